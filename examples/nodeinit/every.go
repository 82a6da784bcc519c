// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const flagEvery = "every"

// everyFlag has check look again and again.
func (a *app) everyFlag(c *cobra.Command) {
	c.Flags().DurationVar(&a.every, flagEvery, 0, "keep checking at about this interval, at most a fifth shorter, until asked to end; --timeout bounds each check, and --report-node and --report-metrics report it; 0: check once")
}

// checkEvery checks until it is asked to end. Each check is a process of its own, as if a
// person had called it: between two there is next to nothing in memory, and one that
// hangs in the kernel is left behind by its own --timeout.
func (a *app) checkEvery(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("--%s: %w", flagEvery, err)
	}
	ignored := strings.Join(append(slices.Clone(a.ignorePreflight), checkAccess), ",") // a thousand nodes ask for no more than they report
	for {
		look := exec.CommandContext(ctx, self, append(os.Args[1:], "--"+flagEvery+"=0", "--ignore-preflight="+ignored)...)
		look.Stdout, look.Stderr = os.Stdout, os.Stderr
		look.Cancel = func() error { return look.Process.Signal(os.Interrupt) }
		look.WaitDelay = 2 * grace
		if err := look.Run(); err != nil && look.ProcessState == nil {
			return fmt.Errorf("--%s: %w", flagEvery, err)
		}
		if look.ProcessState.ExitCode() == exitUsage {
			return usageError{fmt.Errorf("--%s: usage error, see above", flagEvery)}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(a.every - rand.N(a.every/5+1)):
		}
	}
}
