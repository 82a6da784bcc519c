// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/containernetworking/cni/libcni"

	"github.com/slipway-dev/slipway/internal/cniconf"
)

// directory is the directory with the configurations, and identifies ours among them.
type directory struct {
	cniconf.Directory
	own        string            // file name of ours
	suffix     string            // of files that are set aside
	passedOver func(text string) // called for each file that is not a valid configuration; may be nil
	files      recorded          // what is recorded
}

func (i Install) directory(files recorded) directory {
	return directory{Directory: cniconf.Directory{Dir: i.ConfDir}, own: i.ConfName, suffix: i.BackupSuffix, files: files}
}

// others lists the files that a runtime loads besides ours, in the runtime's order:
// by the bytes of their names, without directories.
func (f directory) others(ctx context.Context) ([]string, error) {
	return f.List(ctx, func(name string) bool { return !f.isOwn(name) && isConfName(name) })
}

// isOwn also knows ours as long as its suffix is open.
func (f directory) isOwn(name string) bool {
	return name == f.own || isConfName(name) && f.own != "" && strings.TrimSuffix(name, filepath.Ext(name)) == f.own
}

// named is the name of the configuration's file. Without a suffix it gets the one by which
// runtimes read the content.
func (i Install) named(raw []byte) string {
	n, err := parse("", raw)
	switch {
	case i.ConfName == "" || isConfName(i.ConfName):
		return i.ConfName
	case err == nil && !n.isList:
		return i.ConfName + ".conf"
	}
	return i.ConfName + ".conflist"
}

// Conf is a configuration in a directory.
type Conf struct {
	File    string   // its name
	Network string   // the name of its network
	Plugins []string // their types, in their order
	Raw     []byte
	Err     error // why no pod could use it; it may match [ErrInvalid]
}

// Configs returns the configurations in the directory in the order in which runtimes read them.
// They use the first, as far as it is valid: containerd loads none if that is not, and CRI-O
// passes it over. Which plugins are on the node is not looked at.
func Configs(ctx context.Context, dir string) (all []Conf, err error) {
	f := cniconf.Directory{Dir: dir}
	names, err := f.List(ctx, isConfName)
	for _, name := range names {
		c := Conf{File: name}
		if c.Raw, c.Err = f.Read(ctx, name); c.Err == nil {
			var n *network
			if n, c.Err = parseWhole(ctx, f, name, c.Raw); c.Err == nil {
				c.Network, c.Plugins = n.name, n.types
			}
		}
		all = append(all, c)
	}
	return all, cmp.Or(err, ctx.Err())
}

func isConfName(name string) bool { return cniconf.IsName(name) }

// backup is the n-th name (from 0) under which a file is set aside.
func (f directory) backup(name string, n int) string {
	if n == 0 {
		return name + f.suffix
	}
	return name + f.suffix + "." + strconv.Itoa(n)
}

// origin is the name that a file had before it was set aside; ok is false if it was
// not.
func (f directory) origin(backup string) (name string, ok bool) {
	ext := filepath.Ext(backup)
	if n, err := strconv.Atoi(strings.TrimPrefix(ext, ".")); ext != f.suffix && err == nil && n > 0 && ext == "."+strconv.Itoa(n) {
		backup = strings.TrimSuffix(backup, ext)
	}
	name, ok = strings.CutSuffix(backup, f.suffix)
	return name, ok && isConfName(name)
}

// origins lists the names that a file can have had before it was set aside, whatever the
// suffix.
func origins(backup string) (names []string) {
	for at := 1; at < len(backup); at++ {
		if backup[at] == '.' && isConfName(backup[:at]) && !isConfName(backup) {
			names = append(names, backup[:at])
		}
	}
	return names
}

// loads returns the network that containerd finds in a file, or the reason why it
// fails: it is less strict than [parse], which checks what pods will need.
func loads(name string, raw []byte) (network string, err error) {
	if cniconf.IsList(name) {
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
