// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpffs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/internal/fsmount/fsmounttest"
	"github.com/slipway-dev/slipway/internal/testledger"
)

// A mount used by two agents is removed with the last of them, whichever that is.
func TestPLAN14_AMountOfTwoAgents(t *testing.T) {
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		onEach(t, func(t *testing.T, n fsmounttest.Node) {
			dir, path := testledger.Dir(t), fsmounttest.Mkdir(t, n, "bpf")
			var steps []testledger.Step
			for _, agent := range []string{"first", "second"} {
				steps = append(steps, testledger.Step{Wanter: bpffs.Mount{Path: path, Kernel: n.Kernel()}, Book: testledger.OpenFor(t, dir, agent)})
			}
			for i, want := range []string{"mount bpf on " + path, "keep " + path + ` also for this agent: agent "first" has made it`} {
				changes, err := steps[i].Check(t.Context())
				require.NoError(t, err)
				require.Equal(t, []string{want}, changes)
				require.NoError(t, steps[i].Apply(t.Context()))
				changes, err = steps[i].Check(t.Context())
				require.NoError(t, err)
				require.Empty(t, changes)
			}
			require.NoError(t, steps[order[0]].Undo(t.Context()))
			require.Equal(t, []string{"bpf"}, n.Mounts(path))
			require.NoError(t, steps[order[1]].Undo(t.Context()))
			require.Empty(t, n.Mounts(path))
			require.Empty(t, steps[0].Records(t))
		})
	}
}
