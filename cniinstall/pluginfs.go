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

// PluginFS holds the plugins of open folders, for [Install.Plugins]: a plan that
// runs in the host's namespaces can still read them from the caller's. If several
// folders have a plugin, the first counts. A file without an executable bit is a
// plugin only if [Install.Names] lists it. Opening a file never blocks.
type PluginFS struct {
	union union
	roots []*os.Root
}

// OpenPlugins opens the folders of plugins, in the calling thread's mount
// namespace. The caller closes them after the last installation.
func OpenPlugins(dirs ...string) (*PluginFS, error) {
	p := &PluginFS{}
	for _, dir := range dirs {
		root, err := os.OpenRoot(dir)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w (it must be a directory of this side, such as of this container's image, not of the host)", err)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("folder of CNI plugins to install: %w", err), p.Close())
		}
		p.roots = append(p.roots, root)
		p.union = append(p.union, input.FS(root))
	}
	return p, nil
}

// Open opens a plugin, or the folders as one if name is ".".
func (p *PluginFS) Open(name string) (fs.File, error) { return p.union.Open(name) }

// Stat looks at a plugin without opening it.
func (p *PluginFS) Stat(name string) (fs.FileInfo, error) { return p.union.Stat(name) }

// Close closes the folders.
func (p *PluginFS) Close() error {
	var errs []error
	for _, root := range p.roots {
		errs = append(errs, root.Close())
	}
	return errors.Join(errs...)
}

// String names the folders.
func (p *PluginFS) String() string {
	var names []string
	for _, root := range p.roots {
		names = append(names, root.Name())
	}
	return strings.Join(names, ", ")
}
