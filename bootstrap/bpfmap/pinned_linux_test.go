// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpfmap_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/rlimit"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/bpfmap"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/testledger"
	"github.com/slipway-dev/slipway/internal/testns"
)

// Kernels before 5.11 count maps against RLIMIT_MEMLOCK.
var _ = rlimit.RemoveMemlock()

// node has its own BPF file system.
type node struct {
	t     *testing.T
	root  string // of the file system
	state string
	book  *ledger.Book
}

func newNode(t *testing.T) *node {
	t.Helper()
	testns.Enter(t, testns.Mount)
	dir := testns.TempDir(t)
	n := &node{t: t, root: filepath.Join(dir, "bpf"), state: filepath.Join(dir, "state")}
	n.book = testledger.Open(t, n.state, bpfmap.Kinds()...)
	require.NoError(t, os.Mkdir(n.root, 0o755))
	require.NoError(t, unix.Mount("bpf", n.root, "bpf", 0, "mode=700"))
	return n
}

func (n *node) path(name string) string { return filepath.Join(n.root, "agent", name) }

func hash(name string, entries uint32) *ebpf.MapSpec {
	return &ebpf.MapSpec{Name: name, Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: entries}
}

func (n *node) pinned(specs ...*ebpf.MapSpec) testledger.Step {
	return n.pinnedIn("agent", specs...)
}

func (n *node) pinnedIn(dir string, specs ...*ebpf.MapSpec) testledger.Step {
	return testledger.Step{Wanter: bpfmap.Pinned{Dir: filepath.Join(n.root, dir), Maps: specs}, Book: n.book}
}

func (n *node) apply(p testledger.Step) {
	n.t.Helper()
	require.NoError(n.t, p.Apply(n.t.Context()))
	n.changes(p)
}

func (n *node) changes(p testledger.Step, want ...string) {
	n.t.Helper()
	got, err := p.Check(n.t.Context())
	require.NoError(n.t, err)
	require.Equal(n.t, want, got)
}

func (n *node) load(name string) *ebpf.Map {
	n.t.Helper()
	m, err := ebpf.LoadPinnedMap(n.path(name), nil)
	require.NoError(n.t, err)
	n.t.Cleanup(func() { require.NoError(n.t, m.Close()) })
	return m
}

// pins lists the directory.
func (n *node) pins() (names []string) {
	n.t.Helper()
	entries, err := os.ReadDir(filepath.Join(n.root, "agent"))
	if !os.IsNotExist(err) {
		require.NoError(n.t, err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestRDY4_MapsAreKeptOverRestarts(t *testing.T) {
	n := newNode(t)
	p := n.pinnedIn("agent/", hash("endpoints", 8), hash("services", 8))
	n.changes(p, "make directory "+filepath.Dir(n.path("x")), "create the map "+n.path("endpoints"), "create the map "+n.path("services"))
	n.apply(p)
	info, err := os.Stat(filepath.Join(n.root, "agent"))
	require.NoError(t, err)
	require.EqualValues(t, 0o700, info.Mode().Perm())
	require.NoError(t, n.load("endpoints").Put(uint32(1), uint32(2)))

	n.apply(p)
	var value uint32
	require.NoError(t, n.load("endpoints").Lookup(uint32(1), &value))
	require.EqualValues(t, 2, value)
}

// The directory is listed only while it is missing, but its kind always.
func TestRDY4_PLAN12_ALaterProcessUndoesAllOfTheStep(t *testing.T) {
	n := newNode(t)
	n.apply(n.pinned(hash("endpoints", 8)))
	later := n.pinned(hash("endpoints", 8))
	later.Book = testledger.Open(t, n.state)
	n.apply(later)
	require.NoError(t, later.Undo(t.Context()))
	require.NoDirExists(t, filepath.Dir(n.path("x")))
	require.Empty(t, later.Records(t))
}

func TestRDY4_AMapThatDoesNotFitIsReplaced(t *testing.T) {
	n := newNode(t)
	n.apply(n.pinned(hash("endpoints", 8), hash("services", 8)))
	old := n.load("endpoints")
	require.NoError(t, n.load("services").Put(uint32(1), uint32(2)))

	newer := n.pinned(hash("endpoints", 16), hash("services", 8))
	n.changes(newer, "replace the map "+n.path("endpoints")+" with an empty one: it is Hash of 8 entries, keys of 4 bytes, values of 4, flags 0x0, and must be Hash of 16 entries, keys of 4 bytes, values of 4, flags 0x0")
	n.apply(newer)
	require.EqualValues(t, 16, n.load("endpoints").MaxEntries())
	require.NoError(t, old.Put(uint32(1), uint32(2)), "a holder of the old map keeps using it")
	var value uint32
	require.NoError(t, n.load("services").Lookup(uint32(1), &value), "the other is kept")
	require.Equal(t, []string{"endpoints", "services"}, n.pins())

	require.NoError(t, n.pinned(hash("endpoints", 16)).Undo(t.Context()))
	require.Empty(t, n.pins())
}

// bpffs does not treat a file system with pins as empty.
func TestRDY4_BPF5_AllIsUndoneWithTheFileSystem(t *testing.T) {
	n := newNode(t)
	require.NoError(t, errors.Join(unix.Unmount(n.root, 0), os.Remove(n.root)))
	n.apply(testledger.Step{Wanter: bpffs.Mount{Path: n.root}, Book: n.book})
	n.apply(n.pinned(hash("endpoints", 8)))
	n.apply(n.pinned(hash("endpoints", 16)))
	changes, err := n.pinned().CheckUndo(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{
		"remove the pinned map " + n.path("endpoints"), "remove directory " + n.path(""),
		"unmount bpf from " + n.root, "remove directory " + n.root,
	}, changes)
	require.NoError(t, n.pinned().Undo(t.Context()))
	require.NoDirExists(t, n.root)
	require.NoDirExists(t, n.state)
}

func TestRDY4_MapsOfOthersStay(t *testing.T) {
	n := newNode(t)
	p := n.pinned(hash("endpoints", 8), hash("services", 8))
	theirs, err := ebpf.NewMap(hash("theirs", 8))
	require.NoError(t, err)
	defer theirs.Close()
	require.NoError(t, os.Mkdir(filepath.Join(n.root, "agent"), 0o755))
	require.NoError(t, theirs.Pin(n.path("endpoints")))
	n.apply(p) // which treats it as an earlier version's
	require.NoError(t, os.Remove(n.path("services")))
	clone, err := theirs.Clone() // has its own pin
	require.NoError(t, err)
	defer clone.Close()
	require.NoError(t, clone.Pin(n.path("services")))

	err = p.Undo(t.Context())
	require.ErrorIs(t, err, ledger.ErrChanged)
	require.ErrorContains(t, err, n.path("services"))
	require.Equal(t, []string{"endpoints", "services"}, n.pins())
}

func TestRDY4_WhatIsNoMapIsAnError(t *testing.T) {
	n := newNode(t)
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SocketFilter, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	require.NoError(t, err)
	defer program.Close()
	require.NoError(t, os.MkdirAll(n.path("directory"), 0o755))
	require.NoError(t, program.Pin(n.path("program")))
	p := n.pinned(hash("program", 8), hash("directory", 8), hash("good", 8))
	_, err = p.Check(t.Context())
	require.ErrorContains(t, err, n.path("program"))
	err = p.Apply(t.Context())
	require.ErrorContains(t, err, n.path("program")+": it is not a pinned map")
	require.ErrorContains(t, err, n.path("directory")+": it is not a pinned map")
	require.Equal(t, []string{"directory", "good", "program"}, n.pins(), "the others are pinned")
	require.NoError(t, p.Undo(t.Context()))
	require.Equal(t, []string{"directory", "program"}, n.pins())

	p = n.pinnedIn("../agent", hash("good", 8))
	_, err = p.Check(t.Context())
	require.ErrorContains(t, err, "is not on a BPF file system (mount one first)")
	require.Equal(t, "bpfmap.no-bpffs", code.Of(err))
	require.ErrorContains(t, p.Apply(t.Context()), "is not on a BPF file system")
	p = n.pinnedIn("missing/agent", hash("good", 8))
	require.ErrorIs(t, p.Apply(t.Context()), os.ErrNotExist)
}

// Killed after the new map was pinned and before it replaced the old one, and killed before
// that was recorded.
func TestRDY4_AReplacementThatIsCutShort(t *testing.T) {
	n := newNode(t)
	n.apply(n.pinned(hash("endpoints", 8)))
	left, err := ebpf.NewMap(hash("left", 8))
	require.NoError(t, err)
	defer left.Close()
	require.NoError(t, left.Pin(n.path("slipway_next_endpoints")))
	for _, entries := range []uint32{8, 16} {
		p := n.pinned(hash("endpoints", entries))
		changes, err := p.Check(t.Context())
		require.NoError(t, err)
		require.Contains(t, strings.Join(changes, "\n"), "remove "+n.path("slipway_next_endpoints")+", left by a replacement that was cut short")
		n.apply(p)
		require.Equal(t, []string{"endpoints"}, n.pins())
		require.NoError(t, left.Unpin())
		require.NoError(t, left.Pin(n.path("slipway_next_endpoints")))
	}
	require.NoError(t, testledger.Step{Book: testledger.Open(t, n.state, bpfmap.Kinds()...)}.Undo(t.Context()))
	require.NoDirExists(t, n.path(""))
}
