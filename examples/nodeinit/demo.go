// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/examples/nodeinit/demo"
)

func (a *app) demo(cmd *cobra.Command, _ []string) error {
	if os.Geteuid() != 0 {
		return errors.New("the demo makes namespaces and mounts in them, for which it needs root; type: sudo go run ./examples/nodeinit demo")
	}
	a.ends.Store(false) // it takes its node away first
	scratch, err := os.MkdirTemp("", "nodeinit-demo-")
	if err != nil {
		return err
	}
	return errors.Join(demo.Run(cmd.Context(), a.stdout, scratch, a.again), os.RemoveAll(scratch))
}

// again runs the program as if it were called with args, and no environment.
func (a *app) again(ctx context.Context, args ...string) (status int) {
	nothing := func(string) (string, bool) { return "", false }
	return (&app{stdout: a.stdout, stderr: a.stderr, shell: a.shell, width: a.width, getenv: nothing}).run(ctx, args)
}
