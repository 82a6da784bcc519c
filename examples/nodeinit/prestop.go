// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/cniinstall"
)

// agentsConfStep removes the file that the agent wrote by itself, if a flag says that it
// does.
func (a *app) agentsConfStep(ctx context.Context) ([]bootstrap.Step, error) {
	if a.writeWhenReady == "" || a.userManagedConf {
		return nil, nil
	}
	if err := a.search(ctx, a.warn); err != nil {
		return nil, err
	}
	c := cniinstall.AgentConf{
		ConfDir: a.confDirs[0], ConfName: filepath.Base(a.writeWhenReady), // its folder is the agent's, not the host's
		Force: a.keepPlugins || a.force, Sandboxes: a.sandboxes,
	}
	own := cleanup.Ownership{
		Agent: cleanup.Cilium().Agent, Files: []string{filepath.Join(c.ConfDir, c.ConfName)},
		Exceptions: []cleanup.Exception{{Kind: "cni-folder", Name: c.ConfDir}},
	}
	if err := own.Validate(); err != nil {
		return nil, usageError{fmt.Errorf("--write-cni-conf-when-ready: %w", err)}
	}
	return []bootstrap.Step{{Name: "agents-conf", Action: c}}, nil
}
