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
	"strings"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/input"
)

// AgentConf is the configuration that an agent itself writes once it is ready,
// which signals to the kubelet that the node's network is ready. It is not
// recorded, so Undo removes it by name. It is meant for the agent's removal,
// such as in its preStop hook, before the plugins are undone. Apply makes nothing.
//
// It is a bootstrap.Action with Undo. It does not check whether the name may be another
// agent's: see cleanup.Ownership.Validate.
type AgentConf struct {
	ConfName string // must be one that runtimes load

	// Uninstall says in which ConfDir the file is, and how it is known which sandboxes need
	// it: then it stays, and the error matches [ErrInUse]. With Force it goes nevertheless,
	// for when the plugins stay and the agent will return and write it again.
	Uninstall Uninstall
}

// OnHost lists the mount namespace of the host, and the directory.
func (c AgentConf) OnHost() (namespaces []string, places map[string]string) {
	return []string{"mnt"}, map[string]string{filepath.Dir(c.path()): ""}
}

// Check lists no changes: only the agent writes the file.
func (c AgentConf) Check(context.Context) ([]string, error) { return nil, c.validate() }

// Apply changes nothing.
func (c AgentConf) Apply(ctx context.Context) error { return cmp.Or(ctx.Err(), c.validate()) }

// CheckUndo says whether Undo would remove the file.
func (c AgentConf) CheckUndo(ctx context.Context) (changes []string, err error) {
	if found, err := c.find(ctx); err != nil || !found {
		return nil, err
	}
	return []string{"remove file " + c.path()}, nil
}

// Undo removes the file, if it exists and may be removed.
func (c AgentConf) Undo(ctx context.Context) error {
	if found, err := c.find(ctx); err != nil || !found {
		return err
	}
	return ledger.File().Write(ctx, c.path(), ledger.State{})
}

// find reports whether the file exists, and returns an error if it may not be removed.
func (c AgentConf) find(ctx context.Context) (found bool, err error) {
	if err := cmp.Or(ctx.Err(), c.validate()); err != nil {
		return false, err
	}
	now, err := ledger.File().Read(ctx, c.path())
	switch {
	case err != nil || now.IsZero():
		return false, err
	case now.Type != "file":
		return false, fmt.Errorf("%s is no regular file, as an agent writes its configuration", c.path())
	case c.Uninstall.Force:
		return true, nil
	}
	if err := c.Uninstall.cache().FileInUse(ctx, c.path()); err != nil {
		return false, fmt.Errorf("%s is kept: %w", c.path(), err)
	}
	return true, nil
}

func (c AgentConf) path() string {
	return filepath.Join(cmp.Or(c.Uninstall.ConfDir, defaultConfDir), c.ConfName)
}

func (c AgentConf) validate() error {
	if !isLoaded(c.ConfName) {
		return fmt.Errorf("the agent's CNI configuration %q: no runtime loads a file of that name", c.ConfName)
	}
	dir := filepath.Dir(c.path())
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("CNI directory %q is not an absolute path", dir)
	}
	return owned(dir)
}

// gateFile is the key of Cilium's configuration that lets an agent's pod
// uninstall when it stops.
const gateFile = "cni-uninstall"

// UninstallEnabled reports whether an agent's configuration, mounted at configDir
// with one file for each key, allows a stopping pod to remove the CNI installation:
// it does if the file cni-uninstall contains "true", apart from white space around
// it. If the file is missing or contains anything else, an upgrade may be under
// way, and the installation must not be removed.
func UninstallEnabled(configDir string) (bool, error) {
	if configDir == "" {
		return false, errors.New("cannot tell whether to uninstall CNI: no directory of the agent's configuration given")
	}
	said, err := input.ReadFile(context.Background(), filepath.Join(configDir, gateFile), input.MaxFlags)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot tell whether to uninstall CNI: %w", err)
	}
	return strings.TrimSpace(string(said)) == "true", nil
}
