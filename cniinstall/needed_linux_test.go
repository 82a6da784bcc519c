// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/snapshot"
)

// One of our plugins is kept by another CNI's configuration, and then by a sandbox's record in
// each of the runtimes' folders.
func TestCNI10_OnANode(t *testing.T) {
	_, i := shared(t)
	i.BinDir, i.ConfDir = "", ""
	host := bootstraptest.NewNode(t)
	on := func(f func()) {
		t.Helper()
		require.NoError(t, host.Do(t.Context(), func(context.Context) error { f(); return nil }))
	}
	on(func() { startingPoint{}.set(t) })
	var before snapshot.Snapshot
	on(func() {
		require.NoError(t, os.MkdirAll(nodeConf, 0o755))
		before = lookAt(t)
	})
	plan := planOn(t, host, "", i)
	_, err := plan.Apply(t.Context())
	require.NoError(t, err)

	other := nodeFile{path: nodeConf + "/10-other.conflist", content: portmapConf, mode: 0o644}
	on(func() { other.put(t) })
	report, err := plan.RevertAll(t.Context())
	require.NoError(t, err)
	require.Contains(t, told(report), nodeBin+"/portmap stays: "+other.path+" names it")
	on(func() {
		require.FileExists(t, nodeBin+"/portmap")
		require.NoFileExists(t, nodeBin+"/cilium-cni")
		require.NoError(t, os.Remove(other.path))
	})
	for _, dir := range []string{"/var/lib/cni/results", "/var/lib/cni/cache/results"} {
		path := filepath.Join(dir, "other-1-eth0")
		on(func() { write(t, path, string(cached(t, "1", "other", []byte(portmapConf))), 0o600) })
		_, err = plan.RevertAll(t.Context())
		require.ErrorIs(t, err, cniinstall.ErrInUse)
		require.ErrorContains(t, err, nodeBin+"/portmap is kept: sandboxes need it for their deletion: 1, by "+dir)
		on(func() {
			require.NoFileExists(t, nodeBin+"/loopback", "no configuration remains, and no result names it")
			require.NoError(t, os.RemoveAll("/var/lib/cni"))
		})
	}
	_, err = plan.RevertAll(t.Context())
	require.NoError(t, err)
	on(func() { require.Empty(t, before.Diff(lookAt(t))) })
}

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
			plan := apart(t, n, cniinstall.Handler{})
			plan.Steps = nil
			report, err := plan.RevertAll(ctx)
			require.NoError(t, err)
			if tt.want == "" {
				require.NoFileExists(t, n.plugin("portmap"))
				return
			}
			require.FileExists(t, n.plugin("portmap"))
			advice := strings.Join(told(report), "\n")
			require.Contains(t, advice, n.plugin("portmap")+" stays: cannot tell whether "+n.other("10-other.conflist")+" names it: ")
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
	require.ErrorContains(t, err, n.plugin("portmap")+" stays: cannot tell whether "+other+" names it: ")
	require.FileExists(t, n.plugin("portmap"))
	require.NoError(t, os.Remove(other))
	require.NoError(t, i.Revert(t.Context()))
	require.NoDirExists(t, n.bin)
	require.NoDirExists(t, n.state)
}
