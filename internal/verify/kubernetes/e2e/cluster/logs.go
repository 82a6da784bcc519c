// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cluster

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/slipway-dev/slipway/internal/verify/process"
)

// SaveLogs copies into dir, which is made, the logs of all services and pods, and
// kubectl's description of every object.
func (c *Cluster) SaveLogs(ctx context.Context, dir string) (err error) {
	for _, n := range c.Nodes {
		to := filepath.Join(dir, n.Name)
		err = errors.Join(err, os.MkdirAll(to, 0o755))
		for _, from := range []string{logDir, "/var/log/pods"} {
			_, copyErr := process.Output(exec.CommandContext(ctx, "cp", "-r", n.path(from), to), nil)
			err = errors.Join(err, copyErr)
		}
	}
	for name, args := range map[string][]string{
		"describe": {"describe", "pods,daemonsets,jobs,nodes", "--all-namespaces"},
		"events":   {"get", "events", "--all-namespaces", "--sort-by=.lastTimestamp"},
	} {
		out, kubectlErr := c.Kubectl(ctx, args...)
		err = errors.Join(err, kubectlErr, os.WriteFile(filepath.Join(dir, name+".txt"), []byte(out), 0o644))
	}
	return err
}
