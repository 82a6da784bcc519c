// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package cniconf reads directories of CNI configurations as container runtimes do, and tells
// which plugins the configurations need.
package cniconf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/cniresult"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/input"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// Suffixes are the suffixes of the files that runtimes load.
var Suffixes = []string{".conflist", ".conf", ".json"}

// IsName reports whether runtimes load a file of the name.
func IsName(name string) bool { return slices.Contains(Suffixes, filepath.Ext(name)) }

// IsList reports whether runtimes read the file as a list of plugins, or else as a single
// plugin's configuration (go-cni: loadFromConfDir; ocicni: loadNetworks).
func IsList(file string) bool { return filepath.Ext(file) == ".conflist" }

// Directory is a directory with configurations.
type Directory struct {
	Dir    string
	Opened *durable.Dir // nil: it is opened each time

	Edit func(name string, raw []byte) []byte // makes of each content what Read returns; nil: it stays
}

// List lists the wanted files in the runtime's order, by the bytes of their names, without
// directories.
func (f Directory) List(ctx context.Context, wanted func(name string) bool) ([]string, error) {
	d := f.Opened
	if d == nil {
		var err error
		d, err = durable.OpenDir(f.Dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list CNI configurations: %w", remedy.File(err))
		}
		defer d.Close()
	}
	names, err := input.Collect(ctx, f.Dir, d.All(), wanted)
	if err != nil {
		return nil, fmt.Errorf("list CNI configurations: %w", remedy.File(err))
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		info, err := d.Lstat(name)
		return err == nil && info.IsDir() || errors.Is(err, fs.ErrNotExist)
	})
	slices.Sort(names)
	return names, nil
}

// Read returns the content of a file as a runtime sees it.
func (f Directory) Read(ctx context.Context, name string) ([]byte, error) {
	raw, err := input.ReadFile(ctx, filepath.Join(f.Dir, name), input.MaxNetwork)
	if err == nil && f.Edit != nil {
		raw = f.Edit(name, raw)
	}
	return raw, remedy.File(err)
}

// Types lists the types of the plugins that a runtime runs for a pod by a configuration,
// which it finds under the name: those of a list, or the single one. There are none in a
// file that is no configuration.
func Types(name string, raw []byte) (types []string) {
	type plugin struct{ Type string }
	var conf struct {
		plugin
		Plugins []plugin
	}
	if json.Unmarshal(raw, &conf) != nil {
		return nil
	}
	if !IsList(name) {
		conf.Plugins = []plugin{conf.plugin}
	}
	for _, p := range conf.Plugins {
		if p.Type != "" {
			types = append(types, p.Type)
		}
	}
	return types
}

// Missing lists the plugins that are in none of the directories.
func Missing(types, dirs []string) []string {
	return slices.DeleteFunc(slices.Clone(types), func(plugin string) bool {
		return filepath.Base(plugin) == plugin && slices.ContainsFunc(dirs, func(dir string) bool {
			info, err := os.Stat(filepath.Join(dir, plugin))
			return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
		})
	})
}

// StaysAside is why a configuration that was set aside, with plugins that are missing,
// does not get its name back.
func StaysAside(aside, name string, missing []string) string {
	return fmt.Sprintf("no network works by it without %s, not found where the runtime looks; %s", strings.Join(missing, ", "), Restore(aside, name))
}

// Restore tells how a user restores a configuration that stays aside.
func Restore(aside, name string) string {
	return fmt.Sprintf("mv %s %s restores it", aside, filepath.Join(filepath.Dir(aside), name))
}

// Need returns an error that matches [ledger.ErrNeeded] if one of the configurations that
// counts needs the plugin, and names it. It stops reading at the first that does.
func (f Directory) Need(ctx context.Context, plugin string, counts func(path string) bool) error {
	names, err := f.List(ctx, IsName)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(f.Dir, name)
		if !counts(path) {
			continue
		}
		raw, err := f.Read(ctx, name)
		if err := f.Needs(ctx, plugin, path, raw, err); err != nil {
			return err
		}
	}
	return nil
}

// Needs returns an error that matches [ledger.ErrNeeded] if the configuration with this
// content needs the plugin, and so it stays, or if it cannot tell.
func (f Directory) Needs(ctx context.Context, plugin, conf string, raw []byte, unread error) error {
	name := filepath.Base(plugin)
	switch {
	case errors.Is(unread, fs.ErrNotExist): // gone, or a dangling link
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case name == "loopback":
		return needed("container runtimes run it for each pod, and " + conf + " remains")
	case unread != nil:
		return untold(conf, unread)
	case cniresult.Names(raw, name):
		return needed(conf + " names it")
	}
	return f.EachPart(ctx, conf, raw, func(part string, raw []byte, err error) error {
		switch {
		case err != nil:
			return untold(part, err)
		case cniresult.Names(raw, name):
			return needed(part + " names it")
		}
		return nil
	})
}

// needed is the text of an error that matches [ledger.ErrNeeded].
type needed string

func (n needed) Error() string { return string(n) }
func (needed) Unwrap() error   { return ledger.ErrNeeded }

// untold returns the error for a configuration that cannot be read. If it is not a
// file, that is the node's state, and the plugin stays; if reading fails, the undo
// has failed.
func untold(conf string, err error) error {
	err = fmt.Errorf("cannot tell whether %s names it: %w", conf, err)
	if errno := syscall.Errno(0); errors.As(err, &errno) && errno != syscall.ELOOP {
		return err
	}
	return needed(err.Error())
}

// networkName is what libcni accepts as a name (ValidateNetworkName of its pkg/utils).
var networkName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.\-]*$`)

// EachPart calls each for the plugins that libcni adds to a list from the directory of the
// network's name (NetworkConfFromFile, since 1.3), until it returns an error.
func (f Directory) EachPart(ctx context.Context, conf string, raw []byte, each func(path string, raw []byte, err error) error) error {
	var list struct{ Name string }
	if !IsList(conf) || json.Unmarshal(raw, &list) != nil || !networkName.MatchString(list.Name) {
		return nil
	}
	d := Directory{Dir: filepath.Join(f.Dir, list.Name)}
	names, err := d.List(ctx, func(name string) bool { return filepath.Ext(name) == ".conf" })
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return nil
	case err != nil:
		return each(d.Dir, nil, err)
	}
	for _, name := range names {
		raw, err := d.Read(ctx, name)
		if err := each(filepath.Join(d.Dir, name), raw, err); err != nil {
			return err
		}
	}
	return nil
}
