// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpfmap_test

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bpfmap"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// agent is another agent of the node that pins maps.
func (n *node) agent(name string, f func(p recorded)) {
	n.t.Helper()
	j, err := (&journal.Node{Dir: n.state, Agent: name, NoOwner: true, Handlers: []journal.Handler{bpfmap.Handler{}}}).Open(n.t.Context(), nil)
	require.NoError(n.t, err)
	defer j.Close()
	p := n.pinned()
	p.Journal = j.Step("maps")
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
			n.agent(name, func(p recorded) {
				p.Maps = append(p.Maps, hash("services", 10))
				n.apply(p)
				entries, err := p.Journal.Entries()
				require.NoError(t, err)
				recorded := map[string]bool{}
				for _, e := range entries {
					recorded[e.Object] = true
				}
				require.True(t, recorded[n.path("services")] && recorded[n.path("")], "the map and its directory: %v", entries)
			})
		}
		id := n.id("services")
		n.agent("third", func(p recorded) {
			p.Maps = append(p.Maps, hash("services", 20))
			_, err := p.Check(t.Context())
			require.ErrorIs(t, err, journal.ErrConflict)
			require.ErrorContains(t, err, `agent "second" has Hash of 10 entries, keys of 4 bytes, values of 4, flags 0x0, and this one wants Hash of 20 entries`)
			require.ErrorIs(t, p.Apply(t.Context()), journal.ErrConflict)
		})
		require.Equal(t, id, n.id("services"))
		n.agent(order[0], func(p recorded) { require.NoError(t, p.Revert(t.Context())) })
		require.Equal(t, id, n.id("services"))
		n.agent(order[1], func(p recorded) { require.NoError(t, p.Revert(t.Context())) })
		require.NoDirExists(t, n.path(""))
	}
}
