// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cniinstall"
)

// A configuration that cannot be read may name any plugin: it is reported, and nothing is
// waited for.
func TestCNI10_SEC5_SEC6_WhatCannotBeRead(t *testing.T) {
	for name, tt := range map[string]struct {
		put  func(t *testing.T, path string)
		want string
	}{
		"FIFO":   {func(t *testing.T, path string) { require.NoError(t, unix.Mkfifo(path, 0o600)) }, "is a FIFO, not a regular file"},
		"device": {func(t *testing.T, path string) { require.NoError(t, os.Symlink("/dev/zero", path)) }, "not a regular file"},
		"200 GiB": {func(t *testing.T, path string) {
			write(t, path, "{", 0o600)
			require.NoError(t, os.Truncate(path, 200<<30))
		}, "is larger than 1048576 bytes"},
		"a link to itself":          {func(t *testing.T, path string) { require.NoError(t, os.Symlink(path, path)) }, "too many levels of symbolic links"},
		"a link that leads nowhere": {func(t *testing.T, path string) { require.NoError(t, os.Symlink("nowhere", path)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n, i := shared(t)
			require.NoError(t, i.Apply(t.Context()))
			tt.put(t, n.other("10-other.conflist"))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			plan := apart(t, n, cniinstall.Uninstall{})
			plan.Steps = nil
			report, err := plan.Uninstall(ctx)
			require.NoError(t, err)
			if tt.want == "" {
				require.NoFileExists(t, n.plugin("portmap"))
				return
			}
			require.FileExists(t, n.plugin("portmap"))
			advice := strings.Join(adviceOf(report), "\n")
			require.Contains(t, advice, n.plugin("portmap")+" is still needed: cannot tell whether "+n.other("10-other.conflist")+" names it: ")
			require.Contains(t, advice, tt.want)
		})
	}
}

// If the system fails to read a configuration, the revert fails, rather than only keep the
// plugins that may be named. Reading a process's memory at address 0 fails that way.
func TestCNI10_WhereReadingFailsTheUndoHasFailed(t *testing.T) {
	n, i := shared(t)
	require.NoError(t, i.Apply(t.Context()))
	other := n.other("10-other.conflist")
	require.NoError(t, os.Symlink("/proc/self/mem", other))
	err := i.Revert(t.Context())
	require.ErrorIs(t, err, unix.EIO)
	require.ErrorContains(t, err, n.plugin("portmap")+" is kept: cannot tell whether "+other+" names it: ")
	require.FileExists(t, n.plugin("portmap"))
	require.NoError(t, os.Remove(other))
	require.NoError(t, i.Revert(t.Context()))
	require.NoDirExists(t, n.bin)
	require.NoDirExists(t, n.state)
}
