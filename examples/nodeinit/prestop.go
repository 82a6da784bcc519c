// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/cniresult"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/filemode"
)

// agentsConf is the configuration that an agent writes by itself once it is ready.
// Nobody has recorded it, so it is removed by its name. It stays with the plugins, for
// sandboxes that need them, unless these stay for an agent that comes back.
type agentsConf struct {
	dir, name string
	evenInUse bool
}

func (agentsConf) Check(context.Context) ([]string, error) { return nil, nil }
func (agentsConf) Apply(context.Context) error             { return nil }

// Namespaces and Places say where it is.
func (agentsConf) Namespaces() []string        { return []string{"mnt"} }
func (c agentsConf) Places() map[string]string { return map[string]string{c.dir: ""} }

func (c agentsConf) CheckRevert(ctx context.Context) (changes []string, err error) {
	err = c.found(ctx, func(*durable.Dir) error {
		changes = []string{"remove file " + filepath.Join(c.dir, c.name)}
		return nil
	})
	return changes, err
}

func (c agentsConf) Revert(ctx context.Context) error {
	return c.found(ctx, func(d *durable.Dir) error { return d.Remove(c.name) })
}

// found calls f with the folder if the file is there and may go.
func (c agentsConf) found(ctx context.Context, f func(*durable.Dir) error) error {
	d, err := durable.OpenDir(c.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer d.Close()
	info, err := d.Lstat(c.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is a %s, which no agent writes as its configuration", filepath.Join(c.dir, c.name), filemode.Type(info.Mode()))
	}
	if !c.evenInUse {
		if err := cniresult.FileInUse(ctx, filepath.Join(c.dir, c.name)); err != nil {
			return err
		}
	}
	return f(d)
}

// agentsConfStep undoes what the agent wrote by itself, where a flag says that it
// does.
func (a *app) agentsConfStep(ctx context.Context) ([]bootstrap.Step, error) {
	if a.writeWhenReady == "" || a.userManagedConf {
		return nil, nil
	}
	i, err := a.placed(ctx, cniinstall.Install{})
	if err != nil {
		return nil, err
	}
	c := agentsConf{i.ConfDir, filepath.Base(a.writeWhenReady), a.keepPlugins || a.force} // its folder is the agent's, not the host's
	own := cleanup.Ownership{
		Agent: cleanup.Cilium().Agent, Files: []string{filepath.Join(c.dir, c.name)},
		Exceptions: []cleanup.Exception{{Kind: "cni-folder", Name: c.dir}},
	}
	if err := own.Validate(); err != nil {
		return nil, usageError{fmt.Errorf("--write-cni-conf-when-ready: %w", err)}
	}
	return []bootstrap.Step{{Name: "agents-conf", Action: c}}, nil
}
