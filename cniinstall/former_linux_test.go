// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/internal/snapshot"
)

// The next version lists fewer plugins under another name, while a sandbox still uses one of
// the dropped ones; that one is removed after the sandbox.
func TestCNI10_TheNextVersionOnANode(t *testing.T) {
	_, i := shared(t)
	i.BinDir, i.ConfDir = "", ""
	i.Names = []string{"cilium-cni", "loopback", "portmap"}
	host := bootstraptest.NewNode(t)
	on := func(f func()) {
		t.Helper()
		require.NoError(t, host.Do(t.Context(), func(context.Context) error { f(); return nil }))
	}
	var before snapshot.Snapshot
	on(func() {
		startingPoint{}.set(t)
		before = lookAt(t)
	})
	_, err := planOn(t, host, "", i).Apply(t.Context())
	require.NoError(t, err)
	const result = "/var/lib/cni/results/cilium-1-eth0"
	on(func() {
		write(t, result, string(cached(t, "1", "cilium", []byte(`{"name":"cilium","plugins":[{"type":"cilium-cni"},{"type":"portmap"}]}`))), 0o600)
	})

	i.Names, i.ConfName = i.Names[:2], "90-cilium.conflist"
	next := planOn(t, host, "", i)
	for _, want := range []bootstrap.Status{bootstrap.Changed, bootstrap.Unchanged} {
		report, err := next.Apply(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, report.Results[0].Status)
		require.Len(t, report.Results[0].Advice, 1)
		require.Contains(t, report.Results[0].Advice[0], nodeBin+"/portmap is kept: sandboxes need it for their deletion: 1, by /var/lib/cni/results")
		on(func() {
			require.NoFileExists(t, nodeConf+"/05-cilium.conflist")
			requireContent(t, nodeConf+"/90-cilium.conflist", agentConf, 0o600)
			require.FileExists(t, nodeBin+"/portmap")
		})
	}
	on(func() { require.NoError(t, os.RemoveAll("/var/lib/cni")) })
	report, err := next.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"remove file " + nodeBin + "/portmap"}, report.Results[0].Changes)
	_, err = next.RevertAll(t.Context())
	require.NoError(t, err)
	on(func() { require.Empty(t, before.Diff(lookAt(t))) })
}
