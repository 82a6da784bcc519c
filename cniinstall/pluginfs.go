// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/slipway-dev/slipway/internal/input"
)

// pluginDirs are open directories with plugins. If several have a plugin, the first counts.
type pluginDirs []*os.Root

// OpenPlugins opens the directories of plugins, in the calling thread's mount namespace, for
// [Install.Plugins]: a plan that runs in the host's namespaces can still read them. If
// several directories have a plugin, the first counts. A file without an executable bit is a
// plugin only if [Install.Names] lists it. Opening a file never blocks. The caller closes
// the directories after the last installation.
func OpenPlugins(dirs ...string) (plugins fs.FS, closeAll func() error, err error) {
	if len(dirs) == 0 {
		return nil, nil, errors.New("no directory of CNI plugins to install given")
	}
	var p pluginDirs
	for _, dir := range dirs {
		root, err := os.OpenRoot(dir)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w (it must be a directory of this side, such as of this container's image, not of the host)", err)
		}
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("directory of CNI plugins to install: %w", err), p.close())
		}
		p = append(p, root)
	}
	return p, p.close, nil
}

// Open opens a plugin or, as ".", the first directory.
func (p pluginDirs) Open(name string) (fs.File, error) { return firstOf(p, name, fs.FS.Open) }

// Stat looks at a plugin without opening it.
func (p pluginDirs) Stat(name string) (fs.FileInfo, error) { return firstOf(p, name, fs.Stat) }

// firstOf returns the answer of the first directory that has the file.
func firstOf[T any](p pluginDirs, name string, ask func(fs.FS, string) (T, error)) (answer T, err error) {
	err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	for _, root := range p {
		if answer, err = ask(input.FS(root), name); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return answer, err
}

func (p pluginDirs) close() error {
	var errs []error
	for _, root := range p {
		errs = append(errs, root.Close())
	}
	return errors.Join(errs...)
}

// String names the directories.
func (p pluginDirs) String() string {
	var names []string
	for _, root := range p {
		names = append(names, root.Name())
	}
	return strings.Join(names, ", ")
}
