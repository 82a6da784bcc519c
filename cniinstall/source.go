// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/cniconf"
	"github.com/slipway-dev/slipway/internal/input"
)

// hasModes: files have permissions and owners, and can be renamed while open.
const hasModes = filepath.Separator == '/'

// replaces reports whether a plugin that differs is replaced. Distributions ship a loopback
// plugin, which is not, unless the caller names it.
func (i Install) replaces(name string) bool {
	return slices.Contains(i.Replace, name) || name != loopback && (i.Replace == nil || slices.Contains(i.Replace, anyPlugin))
}

// anyPlugin is in Install.Replace for all but loopback.
const anyPlugin = "*"

// pluginNames returns the plugins asked for, or all that the source has. Without a source there
// are none.
func (i Install) pluginNames(ctx context.Context) ([]string, error) {
	if i.Plugins == nil {
		return nil, nil
	}
	names := slices.Clone(i.Names)
	if names == nil {
		var err error
		if names, _, err = i.listPlugins(ctx); err != nil {
			return nil, fmt.Errorf("list the CNI plugins to install: %w", err)
		}
		if len(names) == 0 {
			return nil, errors.New("the directory of CNI plugins to install is empty, or no file in it is executable")
		}
	}
	return unique(append(names, i.Optional...)), nil
}

// listPlugins lists the plugins in the source and, if that is of directories on disk, the
// files that are none, since they are not executable, such as an archive's LICENSE.
func (i Install) listPlugins(ctx context.Context) (plugins, others []string, err error) {
	dirs, onDisk := i.Plugins.(pluginDirs)
	sources, directory := []fs.FS{i.Plugins}, "the directory"
	if onDisk {
		sources, directory = nil, dirs.String()
	}
	for _, root := range dirs {
		sources = append(sources, input.FS(root))
	}
	var names []string
	for _, source := range sources {
		more, err := listDir(ctx, source, directory)
		if err != nil {
			return nil, nil, err
		}
		names = append(names, more...)
	}
	for _, name := range unique(names) {
		info, err := fs.Stat(i.Plugins, name)
		switch {
		case err != nil:
			return nil, nil, err
		case !info.Mode().IsRegular():
		case onDisk && hasModes && info.Mode().Perm()&0o111 == 0:
			others = append(others, name)
		default:
			plugins = append(plugins, name)
		}
	}
	return plugins, others, nil
}

// listDir lists what can be a plugin by its name.
func listDir(ctx context.Context, source fs.FS, directory string) ([]string, error) {
	f, err := source.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	dir, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, &fs.PathError{Op: "readdir", Path: ".", Err: errors.ErrUnsupported}
	}
	names, err := input.Collect(ctx, directory, input.Names(dir), func(string) bool { return true })
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, ".") || isConfName(name) }), err
}

// leftOut names the files that are no plugins.
func (i Install) leftOut(ctx context.Context) []string {
	if i.Plugins == nil || i.Names != nil {
		return nil
	}
	_, others, err := i.listPlugins(ctx)
	if err != nil || len(others) == 0 {
		return nil // Check reports the error
	}
	return []string{fmt.Sprintf("left out of the CNI plugins to install, since they are not executable: %s (in %v)", strings.Join(others, ", "), i.Plugins)}
}

// loopback is the plugin that no configuration names and that a runtime runs for
// each pod, unless it brings up the loopback device itself.
const loopback = "loopback"

// needsLoopback reports whether pods would fail without that plugin, as far as is
// known. A network into which a plugin is put is not ours, and was there before.
func (i Install) needsLoopback() bool {
	_, inPlace := i.inPlace()
	return !inPlace && !slices.Contains(i.Optional, loopback) && !slices.Contains(i.Vouched, loopback) && !i.Runtime.OwnLoopback
}

// lacking names the tolerated plugins that are neither installed nor about to be.
func (i Install) lacking() (texts []string) {
	if i.Plugins == nil {
		return nil
	}
	optional := i.Optional
	if i.Config == nil && i.needsLoopback() {
		optional = append(slices.Clone(optional), loopback)
	}
	for _, name := range optional {
		if _, err := fs.Stat(i.Plugins, name); !errors.Is(err, fs.ErrNotExist) || slices.Contains(i.Vouched, name) {
			continue
		}
		if _, err := find(name, i.searchDirs()); err != nil {
			texts = append(texts, fmt.Sprintf("CNI plugin %s is not among those to install, nor in %s", name, strings.Join(i.searchDirs(), ", ")))
		}
	}
	return texts
}

// binDirs returns the directories in which plugins are installed.
func (i Install) binDirs() []string { return append([]string{i.BinDir}, i.AlsoBinDirs...) }

// searchDirs returns the directories in which the runtime looks for plugins, as far as is known.
func (i Install) searchDirs() []string {
	dirs := i.binDirs()
	for _, dir := range i.Runtime.PluginDirs {
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// directories returns the directories of all files to install.
func (i Install) directories() (dirs []string) {
	if i.Plugins != nil {
		dirs = i.binDirs()
	}
	if i.Config != nil {
		dirs = append(dirs, i.ConfDir)
	}
	return dirs
}

// withDefaults fills in the zero fields and checks the rest.
func (i Install) withDefaults() (Install, error) {
	i.BinDir = filepath.Clean(cmp.Or(i.BinDir, defaultBinDir))
	i.ConfDir = filepath.Clean(cmp.Or(i.ConfDir, defaultConfDir))
	i.BackupSuffix = cmp.Or(i.BackupSuffix, defaultBackupSuffix)
	also := i.AlsoBinDirs
	i.AlsoBinDirs = nil
	for _, dir := range also {
		if dir = filepath.Clean(dir); !slices.Contains(i.binDirs(), dir) {
			i.AlsoBinDirs = append(i.AlsoBinDirs, dir)
		}
	}
	for _, dir := range append(i.searchDirs(), i.ConfDir) {
		if !filepath.IsAbs(dir) {
			return i, fmt.Errorf("CNI directory %q is not an absolute path", dir)
		}
	}
	for _, dir := range append(i.binDirs(), i.ConfDir) {
		if err := owned(dir); err != nil {
			return i, err
		}
	}
	_, isInPlace := i.inPlace()
	switch {
	case isInPlace:
		i.ConfName = "" // none is published
	case i.ConfName == "" && i.Config != nil:
		return i, errors.New("no file name given for the CNI configuration")
	case i.ConfName != "" && !isLoaded(i.ConfName) && (!isFileName(i.ConfName) || filepath.Ext(i.ConfName) != ""):
		return i, fmt.Errorf("CNI configuration name %q: no runtime loads it (needs a file name, perhaps ending in %s)",
			i.ConfName, strings.Join(cniconf.Suffixes, ", "))
	}
	return i, nil
}

// owned returns an error if the directory belongs to the system: no CNI file is
// installed there, so none is removed from it, even if a ledger lists one.
func owned(dir string) error {
	switch dir {
	case "/", "/bin", "/boot", "/etc", "/home", "/lib", "/lib64", "/root", "/run", "/sbin", "/usr", "/usr/bin",
		"/usr/lib", "/usr/lib64", "/usr/sbin", "/var", "/var/lib", "/var/run":
		return fmt.Errorf("CNI directory %s is the system's: name one for CNI", dir)
	}
	return nil
}

// isLoaded reports whether runtimes load a file of this name.
func isLoaded(name string) bool {
	return isFileName(name) && isConfName(name)
}

func isFileName(name string) bool {
	return fs.ValidPath(name) && name != "." && !strings.ContainsAny(name, "/\\\x00")
}
