// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// The recorded content: the earlier one, and the one that was left.
const earlier, left = "earlier", "left by us"

func recordTargets() []target {
	files := journal.Files{Kind: "attack"}
	begin := func(a *arena) error {
		return a.recorded(files, func(j *journal.Journal) error {
			return files.Begin(a.ctx, j, a.path("pub/x"), journal.State{Type: "file"})
		})
	}
	return []target{{
		name: "record a small file", pairs: file, setup: fileBesideLink("earlier", "secret"), try: begin, naive: keep,
	}, {
		name: "record a large file", pairs: file, try: begin, naive: keep,
		setup: func(a *arena) {
			fileBesideLink(strings.Repeat("earlier", 1000), "large")(a)
			a.file("victim/large", strings.Repeat(secret, 1000), 0o600, 0)
		},
	}, {
		slow: true, name: "record directories", pairs: parent, setup: besideLink(empty), naive: naivelyBelow(makeDir),
		try: func(a *arena) error {
			return a.recorded(files, func(j *journal.Journal) error { return files.MkdirAll(a.ctx, j, a.path("pub/p/x/y"), 0o755) })
		},
	}, {
		name: "undo a file, beside a link", pairs: parent, try: undo, slow: true, naive: naivelyBelow(undoWrite),
		setup: written(files, besideLink(holding(earlier)), holding(left), "victim"),
	}, {
		name: "undo a file, beside root's", pairs: roots, try: undo, slow: true, naive: naivelyBelow(undoWrite),
		setup: written(files, besideRoots(holding(earlier), holding("root's")), nil, ""),
	}, {
		name: "undo a file, in its place", pairs: file, try: undo, slow: true, naive: naively("pub/x", overwrite),
		setup: writtenTo(files, "pub/x", fileBesideLink(earlier, "secret")),
	}, {
		name: "undo a new file, beside a link", pairs: parent, try: undo, slow: true, naive: naivelyBelow(undoMake),
		setup: written(files, besideLink(empty), holding(left), "victim"),
	}, {
		name: "undo a new file, beside root's", pairs: roots, try: undo, slow: true, naive: naivelyBelow(undoMake),
		setup: written(files, besideRoots(empty, holding("root's")), nil, ""),
	}, {
		name: "undo directories, beside a link", pairs: parent, try: undo, slow: true, naive: naivelyBelow(undoMkdir),
		setup: madeDir(files, besideLink(empty), func(a *arena) { a.dir("victim/x", 0o755, 0) }),
	}, {
		name: "undo directories, beside root's", pairs: roots, try: undo, slow: true, naive: naivelyBelow(undoMkdir),
		setup: madeDir(files, besideRoots(empty, func(a *arena, dir string) { a.dir(dir+"/x", 0o700, 0) }), nil),
	}}
}

// recorded calls f with a journal.
func (a *arena) recorded(h journal.Handler, f func(*journal.Journal) error) error {
	j, err := (&journal.Node{Dir: a.path("state/journal"), Agent: "agent", NoOwner: true, Handlers: []journal.Handler{h}}).Open(a.ctx, nil)
	if err != nil {
		return err
	}
	return errors.Join(f(j.Step("attack")), j.Close())
}

// undone makes undo undo the changes that f records.
func (a *arena) undone(h journal.Handler, f func(*journal.Journal) error) {
	a.do(a.recorded(h, f))
	a.undo = func(ctx context.Context) error {
		return a.recorded(h, func(j *journal.Journal) error { return j.Revert(ctx) })
	}
}

func undo(a *arena) error { return a.undo(a.ctx) }

// written is setup, followed by recording and writing pub/p/x, with trap in the directory
// where the attacker wants the undo to happen.
func written(files journal.Files, setup func(*arena), trap func(*arena, string), where string) func(*arena) {
	write := writtenTo(files, "pub/p/x", setup)
	return func(a *arena) {
		write(a)
		if trap != nil {
			trap(a, where)
		}
	}
}

func writtenTo(files journal.Files, name string, setup func(*arena)) func(*arena) {
	return func(a *arena) {
		setup(a)
		path := a.path(name)
		a.undone(files, func(j *journal.Journal) error {
			return files.Write(a.ctx, j, path, journal.File{Content: []byte(left), Mode: 0o644})
		})
	}
}

// madeDir is setup, followed by recording and making pub/p/x.
func madeDir(files journal.Files, setup, trap func(*arena)) func(*arena) {
	return func(a *arena) {
		setup(a)
		a.undone(files, func(j *journal.Journal) error { return files.MkdirAll(a.ctx, j, a.path("pub/p/x"), 0o755) })
		if trap != nil {
			trap(a)
		}
	}
}
