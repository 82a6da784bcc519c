// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package installers

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/sysctl"
)

// Setting is the environment in which an installer works.
type Setting struct {
	Root  string            // root of the node's files; if empty, /, and the process runs on the node
	Image string            // the folder with the container's files
	Env   map[string]string // of the container
	Owner string            // the pod
	Adopt bool              // adopts the objects that an older installer has left
}

func (s Setting) path(p string) string  { return filepath.Join("/", s.Root, p) }
func (s Setting) image(p string) string { return filepath.Join(s.Image, p) }

func (s Setting) env(name, otherwise string) string {
	if value, ok := s.Env[name]; ok {
		return value
	}
	return otherwise
}

// host returns the node; one below a directory has a lock of its own.
func (s Setting) host() (h hostns.Host) {
	if s.Root != "" {
		h.Here, h.LockFile = true, s.path("/run/slipway.lock")
	}
	return h
}

// plan returns an agent's plan, with handlers to undo everything that the packages do.
func (s Setting) plan(agent string, steps ...bootstrap.Step) *bootstrap.Plan {
	return &bootstrap.Plan{
		Host: s.host(),
		Journal: &journal.Node{
			Dir: s.path(journal.DefaultDir), Agent: agent, Owner: s.Owner, Adopt: s.Adopt,
			Handlers: []journal.Handler{
				hostpath.Handler{}, cgroup.Handler{}, bpffs.Handler{}, sysctl.Handler{}, cniinstall.Handler{ConfDir: s.path(confDir)},
			},
		},
		Steps: steps,
	}
}

// paths returns the step for the folders and files that a pod mounts.
func (s Setting) paths(list ...hostpath.Path) bootstrap.Step {
	for i := range list {
		list[i].Path = s.path(list[i].Path)
	}
	return bootstrap.Step{Name: "paths", Action: hostpath.Paths{List: list}}
}

// readAll reads the named files of a folder, if they exist.
func readAll(dir string, names ...string) (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case err == nil:
			all[name] = content
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return all, nil
}
