// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/containernetworking/cni/libcni"

	"github.com/slipway-dev/slipway/internal/filemode"
	"github.com/slipway-dev/slipway/internal/record"
)

// folder is the one that configurations are in, and what of it is ours.
type folder struct {
	dir    string
	own    string // file name of ours
	suffix string // of files that are set aside
	warn   func(text string)
	book   *record.Book // nil: no record
}

func (i Install) folder() folder {
	return folder{dir: i.ConfDir, own: i.ConfName, suffix: i.BackupSuffix, warn: i.Warn}
}

// others lists the files that a runtime loads beside ours, in its order: by
// the bytes of their names, directories left out.
func (f folder) others() ([]string, error) {
	return f.list(func(name string) bool {
		return name != f.own && slices.Contains(confSuffixes, filepath.Ext(name))
	})
}

func (f folder) list(wanted func(name string) bool) ([]string, error) {
	entries, err := os.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list CNI configurations: %w", hint(err))
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() && wanted(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// backup is the n-th name (from 0) under which a file is set aside.
func (f folder) backup(name string, n int) string {
	if n == 0 {
		return name + f.suffix
	}
	return name + f.suffix + "." + strconv.Itoa(n)
}

// origin is the name that a file had which was set aside; false: it was not.
func (f folder) origin(backup string) (name string, ok bool) {
	if ext := filepath.Ext(backup); ext != f.suffix && isNumber(strings.TrimPrefix(ext, ".")) {
		backup = strings.TrimSuffix(backup, ext)
	}
	name, ok = strings.CutSuffix(backup, f.suffix)
	return name, ok && slices.Contains(confSuffixes, filepath.Ext(name))
}

func isNumber(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n > 0 && strconv.Itoa(n) == s
}

// read gives the content of a file as a runtime gets it, through a symbolic
// link if it is one.
func (f folder) read(name string) ([]byte, error) {
	path := filepath.Join(f.dir, name)
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() { // a FIFO would block
		err = fmt.Errorf("%s is a %s, not a file", path, filemode.Type(info.Mode()))
	}
	if err != nil {
		return nil, hint(err)
	}
	raw, err := os.ReadFile(path)
	return raw, hint(err)
}

// loads says which network containerd finds in a file, or why it fails: it is
// less strict than [parse], which looks at what pods will need.
func loads(name string, raw []byte) (network string, err error) {
	if filepath.Ext(name) == ".conflist" {
		list, err := libcni.NetworkConfFromBytes(raw)
		if err == nil && len(list.Plugins) == 0 {
			err = errors.New("it has no plugins")
		}
		if err != nil {
			return "", err
		}
		return list.Name, nil
	}
	conf, err := libcni.NetworkPluginConfFromBytes(raw)
	if err != nil {
		return "", err
	}
	return conf.Network.Name, nil
}
