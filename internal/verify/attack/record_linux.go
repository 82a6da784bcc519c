// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// The recorded content: the earlier one, and the one that was left.
const earlier, left = "earlier", "left by us"

func recordTargets() []target {
	record := func(a *arena) error { return a.recorded(fileOf(a, "pub/x")) }
	return []target{{
		name: "record a small file", pairs: file, setup: fileBesideLink("earlier", "secret"), try: record, naive: keep,
	}, {
		name: "record a large file", pairs: file, try: record, naive: keep,
		setup: func(a *arena) {
			fileBesideLink(strings.Repeat("earlier", 1000), "large")(a)
			a.file("victim/large", strings.Repeat(secret, 1000), 0o600, 0)
		},
	}, {
		slow: true, name: "record directories", pairs: parent, setup: besideLink(empty), naive: naivelyBelow(makeDir),
		try: func(a *arena) error { return a.recorded(dirOf(a, "pub/p/x/y")) },
	}, {
		name: "undo a file, beside a link", pairs: parent, try: undo, slow: true, naive: naivelyBelow(undoWrite),
		setup: written("pub/p/x", besideLink(holding(earlier)), func(a *arena) { holding(left)(a, "victim") }),
	}, {
		name: "undo a file, beside root's", pairs: roots, try: undo, slow: true, naive: naivelyBelow(undoWrite),
		setup: written("pub/p/x", besideRoots(holding(earlier), holding("root's")), nil),
	}, {
		name: "undo a file, in its place", pairs: file, try: undo, slow: true, naive: naively("pub/x", overwrite),
		setup: written("pub/x", fileBesideLink(earlier, "secret"), nil),
	}, {
		name: "undo a new file, beside a link", pairs: parent, try: undo, slow: true, naive: naivelyBelow(undoMake),
		setup: written("pub/p/x", besideLink(empty), func(a *arena) { holding(left)(a, "victim") }),
	}, {
		name: "undo a new file, beside root's", pairs: roots, try: undo, slow: true, naive: naivelyBelow(undoMake),
		setup: written("pub/p/x", besideRoots(empty, holding("root's")), nil),
	}, {
		name: "undo directories, beside a link", pairs: parent, try: undo, slow: true, naive: naivelyBelow(undoMkdir),
		setup: madeDir(besideLink(empty), func(a *arena) { a.dir("victim/x", 0o755, 0) }),
	}, {
		name: "undo directories, beside root's", pairs: roots, try: undo, slow: true, naive: naivelyBelow(undoMkdir),
		setup: madeDir(besideRoots(empty, func(a *arena, dir string) { a.dir(dir+"/x", 0o700, 0) }), nil),
	}}
}

// wants is what is recorded in an attempt.
type wants func(context.Context) (ledger.Wants, error)

func (w wants) Wants(ctx context.Context) (ledger.Wants, error) { return w(ctx) }

func fileOf(a *arena, name string) ledger.Wanter {
	return wants(func(context.Context) (ledger.Wants, error) {
		return ledger.Wants{List: []ledger.Want{ledger.FileWant(a.path(name), 0o644, []byte(left))}}, nil
	})
}

func dirOf(a *arena, name string) ledger.Wanter {
	return wants(func(context.Context) (ledger.Wants, error) {
		dirs, err := ledger.DirWants(a.path(name), 0o755)
		return ledger.Wants{List: dirs}, err
	})
}

// recorded brings the objects to the wanted states, with a ledger.
func (a *arena) recorded(w ledger.Wanter) error {
	_, err := a.apply(w)
	return err
}

func (a *arena) apply(w ledger.Wanter) (all ledger.Wants, err error) {
	return all, a.withLedger(all, func(b *ledger.Book) error {
		if all, err = w.Wants(ledger.With(a.ctx, b)); err != nil {
			return err
		}
		_, err = b.Apply(a.ctx, "attack", all)
		return err
	})
}

// withLedger calls f with a ledger that knows the kinds of the wanted objects.
func (a *arena) withLedger(of ledger.Wants, f func(*ledger.Book) error) error {
	var kinds []*ledger.Kind
	for _, w := range of.List {
		kinds = append(kinds, w.Kind)
	}
	b, err := (&ledger.Ledger{Dir: a.path("state/ledger"), Agent: "agent", NoOwner: true, Kinds: kinds}).Open(a.ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(b), b.Close())
}

// undone records the wanted objects, and makes undo undo that.
func (a *arena) undone(w ledger.Wanter) {
	all, err := a.apply(w)
	a.do(err)
	a.undo = func(ctx context.Context) error {
		return a.withLedger(all, func(b *ledger.Book) error {
			_, err := b.Undo(ctx, nil)
			return err
		})
	}
}

func undo(a *arena) error { return a.undo(a.ctx) }

// recordedAfter is setup, followed by recording and making what is wanted, and then trap, where
// the attacker wants the undo to happen.
func recordedAfter(setup func(*arena), made func(*arena) ledger.Wanter, trap func(*arena)) func(*arena) {
	return func(a *arena) {
		setup(a)
		a.undone(made(a))
		if trap != nil {
			trap(a)
		}
	}
}

func written(name string, setup, trap func(*arena)) func(*arena) {
	return recordedAfter(setup, func(a *arena) ledger.Wanter { return fileOf(a, name) }, trap)
}

func madeDir(setup, trap func(*arena)) func(*arena) {
	return recordedAfter(setup, func(a *arena) ledger.Wanter { return dirOf(a, "pub/p/x") }, trap)
}
