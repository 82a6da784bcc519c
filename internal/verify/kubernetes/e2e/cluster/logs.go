// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// SaveLogs copies into dir, which is made, the logs of all services and pods, and
// kubectl's description of every object.
func (c *Cluster) SaveLogs(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("save the logs: %w", err)
	}
	var errs []error
	for name, args := range map[string][]string{
		"describe": {"describe", "pods,daemonsets,jobs,nodes", "--all-namespaces"},
		"events":   {"get", "events", "--all-namespaces", "--sort-by=.lastTimestamp"},
	} {
		out, err := c.Kubectl(ctx, args...)
		errs = append(errs, err, os.WriteFile(filepath.Join(dir, name+".txt"), []byte(out), 0o644))
	}
	return errors.Join(append(errs, c.copyLogs(dir, logDir), c.copyLogs(dir, "/var/log/pods"))...)
}

// Ends returns the last lines of each file below dir, for readers of a test's output who
// cannot see the machine that it ran on.
func Ends(dir string, lines int) (string, error) {
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		all := slices.Collect(strings.Lines(string(content)))
		if len(all) > 0 {
			fmt.Fprintf(&out, "== the end of %s\n%s\n", path, strings.TrimSuffix(strings.Join(all[max(0, len(all)-lines):], ""), "\n"))
		}
		return nil
	})
	return out.String(), err
}

func (c *Cluster) copyLogs(dir, from string) error {
	root := c.path(from)
	return filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.Base(from), name)
		return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, content, 0o644))
	})
}
