// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/containernetworking/cni/libcni"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/durable"
)

// folder is the one that configurations are in, and what of it is ours.
type folder struct {
	dir    string
	own    string // file name of ours
	suffix string // of files that are set aside
	warn   func(text string)
	opened *durable.Dir             // nil: it is opened each time
	known  map[string]journal.Entry // what is recorded, by path
}

func (i Install) folder() folder {
	return folder{dir: i.ConfDir, own: i.ConfName, suffix: i.BackupSuffix, warn: i.Warn}
}

func (j *job) folder() folder {
	f := j.Install.folder()
	f.opened, f.known = j.confDir, j.known
	return f
}

// others lists the files that a runtime loads beside ours, in its order: by
// the bytes of their names, directories left out.
func (f folder) others() ([]string, error) {
	return f.list(func(name string) bool { return name != f.own && isConfName(name) })
}

func isConfName(name string) bool { return slices.Contains(confSuffixes, filepath.Ext(name)) }

// list lists the wanted files, in the order of their names.
func (f folder) list(wanted func(name string) bool) ([]string, error) {
	d := f.opened
	if d == nil {
		var err error
		d, err = durable.OpenDir(f.dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list CNI configurations: %w", hint(err))
		}
		defer d.Close()
	}
	names, err := d.Names()
	if err != nil {
		return nil, fmt.Errorf("list CNI configurations: %w", hint(err))
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		if !wanted(name) {
			return true
		}
		info, err := d.Lstat(name)
		return err == nil && info.IsDir() || errors.Is(err, fs.ErrNotExist)
	})
	slices.Sort(names)
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
	return name, ok && isConfName(name)
}

func isNumber(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n > 0 && strconv.Itoa(n) == s
}

// read gives the content of a file as a runtime gets it.
func (f folder) read(name string) ([]byte, error) {
	raw, err := readInput(filepath.Join(f.dir, name))
	return raw, hint(err)
}

// maxConf is how large a configuration can be: far more than any is.
const maxConf = 1 << 20

// readInput reads a file that others have written, through a symbolic link if
// it is one, as the kubelet's are.
func readInput(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := isFile(path, info); err != nil { // to open a device may do something
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonBlock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err == nil {
		err = isFile(path, info)
	}
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxConf+1))
	if err == nil && len(raw) > maxConf {
		err = tooLarge(path)
	}
	return raw, err
}

func isFile(path string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return fmt.Errorf("%s is a %s, not a file", path, typeName(info.Mode()))
}

func tooLarge(path string) error {
	return fmt.Errorf("%s is larger than %d bytes, and so no CNI configuration", path, maxConf)
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
