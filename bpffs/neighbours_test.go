// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpffs_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/bpffs"
)

// A mount used by two agents is removed with the last of them, whichever that is.
func TestPLAN14_AMountOfTwoAgents(t *testing.T) {
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		k := bootstraptest.NewKernel()
		dir := filepath.Join(t.TempDir(), "state")
		var plans []*bootstrap.Plan
		for _, agent := range []string{"first", "second"} {
			plans = append(plans, &bootstrap.Plan{
				Host:    hostns.Host{LockFile: filepath.Join(t.TempDir(), "lock")},
				Journal: &journal.Node{Dir: dir, Agent: agent, NoOwner: true, Handlers: []journal.Handler{bpffs.Handler{Kernel: k}}},
				Steps:   []bootstrap.Step{{Name: "bpffs", Action: bpffs.Mount{Path: "/sys/fs/bpf", Kernel: k}}},
			})
		}
		for i, want := range []string{"mount bpf on /sys/fs/bpf", `keep /sys/fs/bpf also for this agent: agent "first" has made it`} {
			report, err := plans[i].Apply(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{want}, report.Results[0].Changes)
			report, err = plans[i].Apply(t.Context())
			require.NoError(t, err)
			require.Equal(t, bootstrap.Unchanged, report.Results[0].Status)
		}
		mounted := func() string {
			path, err := bpffs.Mount{Path: "/sys/fs/bpf", Kernel: k}.Mounted(t.Context())
			require.NoError(t, err)
			return path
		}
		_, err := plans[order[0]].RevertAll(t.Context())
		require.NoError(t, err)
		require.Equal(t, "/sys/fs/bpf", mounted())
		_, err = plans[order[1]].RevertAll(t.Context())
		require.NoError(t, err)
		require.Empty(t, mounted())
		require.NoDirExists(t, dir)
	}
}
