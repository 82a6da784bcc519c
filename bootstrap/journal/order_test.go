// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// The time to sort a journal grows almost linearly with its length: this one takes seconds,
// where a quadratic order would take many minutes.
func TestSEC6_ManyEntries(t *testing.T) {
	const n = 20_000
	v := newValues()
	j := open(t, filepath.Join(t.TempDir(), "state"), journal.Node{Handlers: []journal.Handler{v}})
	var all []journal.Entry
	for i := range n {
		object := fmt.Sprint(i)
		v.now[object] = "1"
		all = append(all, journal.Entry{Kind: "acme/value", Object: object, Before: value(""), After: value("1"), Needs: []string{fmt.Sprint(i - 1)}})
	}
	ctx := step(t, j, "one")
	require.NoError(t, j.Begin(ctx, all...))
	require.NoError(t, j.Begin(ctx, all...))
	require.NoError(t, j.Complete(ctx, all...))
	require.NoError(t, j.Revert(ctx))
	require.Len(t, *v.order, n)
	require.NoDirExists(t, j.Dir())
}

// slowOrder is a simple implementation of the order.
func slowOrder(entries []journal.Entry) (sorted []journal.Entry) {
	same := func(a, b journal.Entry) bool { return a.Kind == b.Kind && a.Object == b.Object && a.Step == b.Step }
	rest := slices.Clone(entries)
	slices.Reverse(rest)
	for len(rest) > 0 {
		i := max(0, slices.IndexFunc(rest, func(e journal.Entry) bool {
			return !slices.ContainsFunc(rest, func(o journal.Entry) bool { return !same(o, e) && slices.Contains(o.Needs, e.Object) })
		}))
		sorted = append(sorted, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	return sorted
}

func TestPLAN12_OrderOfAnyEntries(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		known, entries := map[string]bool{}, []journal.Entry{}
		for range 1 + r.IntN(9) {
			e := journal.Entry{Kind: fmt.Sprint("kind", r.IntN(2)), Object: fmt.Sprint("o", r.IntN(7)), Step: fmt.Sprint("step", r.IntN(2))}
			for range r.IntN(3) {
				e.Needs = append(e.Needs, fmt.Sprint("o", r.IntN(7)))
			}
			if id := e.String() + e.Step; !known[id] {
				known[id] = true
				entries = append(entries, e)
			}
		}
		require.Equal(t, slowOrder(entries), journal.Order(entries), entries)
	}
}
