// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpfmap_test

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bpfmap"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/testledger"
)

// agent is another agent of the node that pins maps.
func (n *node) agent(name string, f func(p testledger.Step), specs ...*ebpf.MapSpec) {
	n.t.Helper()
	p := n.pinned(specs...)
	p.Book = testledger.OpenFor(n.t, n.state, name, bpfmap.Kinds()...)
	f(p)
}

// id returns the map's id, which no other map has.
func (n *node) id(name string) ebpf.MapID {
	n.t.Helper()
	info, err := n.load(name).Info()
	require.NoError(n.t, err)
	id, ok := info.ID()
	require.True(n.t, ok)
	return id
}

// A map that two agents want stays until both are reverted, whichever made it. An agent that
// wants a different map there gets an error, and nothing is replaced.
func TestPLAN14_AMapOfTwoAgents(t *testing.T) {
	for _, order := range [][]string{{"first", "second"}, {"second", "first"}} {
		n := newNode(t)
		for _, name := range []string{"first", "second"} {
			n.agent(name, n.apply, hash("services", 10))
		}
		id := n.id("services")
		n.agent("third", func(p testledger.Step) {
			_, err := p.Check(t.Context())
			require.ErrorIs(t, err, ledger.ErrConflict)
			require.ErrorContains(t, err, `agent "second"`)
			require.ErrorIs(t, p.Apply(t.Context()), ledger.ErrConflict)
		}, hash("services", 20))
		require.Equal(t, id, n.id("services"))
		n.agent(order[0], func(p testledger.Step) { require.NoError(t, p.Undo(t.Context())) })
		require.Equal(t, id, n.id("services"))
		n.agent(order[1], func(p testledger.Step) { require.NoError(t, p.Undo(t.Context())) })
		require.NoDirExists(t, n.path(""))
	}
}
