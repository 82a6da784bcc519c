// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/sysctl"
)

// neighbour is an agent of a node that has other agents as well.
type neighbour struct {
	t      *testing.T
	kernel sysctl.Kernel
	book   book
}

func newNeighbour(t *testing.T, dir, name string, k *bootstraptest.Kernel) neighbour {
	n := neighbour{t: t}
	if k != nil { // nil: the real one
		n.kernel.Files = k
	}
	n.book = book{opened(t, dir, name, k, n.kernel.Files, ""), "sysctl"}
	return n
}

func (n neighbour) settings(values ...sysctl.Setting) recordedValues {
	return recordedValues{sysctl.Settings{Values: values, Kernel: n.kernel}, n.book}
}

func (n neighbour) apply(values ...sysctl.Setting) {
	n.t.Helper()
	s := n.settings(values...)
	require.NoError(n.t, s.Apply(n.t.Context()))
	require.Empty(n.t, check(n.t, s))
}

func (n neighbour) uninstall() {
	n.t.Helper()
	require.NoError(n.t, n.book.revertAll(n.t.Context()))
}

func (n neighbour) value(key sysctl.Key) string {
	v, err := n.kernel.Get(key)
	require.NoError(n.t, err)
	return v
}

func TestPLAN14_AValueOfTwoAgents(t *testing.T) {
	const key = "net.ipv4.conf.eth0.rp_filter"
	k := bootstraptest.NewKernel("eth0")
	dir := filepath.Join(t.TempDir(), "state")
	first, second := newNeighbour(t, dir, "first", k), newNeighbour(t, dir, "second", k)
	before := first.value(key)
	wanted := sysctl.Setting{Key: key, Value: "2"}
	first.apply(wanted)
	changes, err := second.settings(wanted).Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{`keep net.ipv4.conf.eth0.rp_filter#2 also for this agent: agent "first" has made it`}, changes)
	second.apply(wanted)
	_, err = second.settings(sysctl.Setting{Key: key, Value: "1"}).Check(t.Context())
	require.ErrorIs(t, err, ledger.ErrConflict)
	first.uninstall()
	require.Equal(t, "2", second.value(key))
	second.uninstall()
	require.Equal(t, before, second.value(key))
	require.NoDirExists(t, dir)
}

// A value that the kernel changes along with another stays as long as an agent wants it.
func TestPLAN14_AValueThatIsDraggedAlong(t *testing.T) {
	const cause, along = "net.ipv4.ip_forward", "net.ipv4.conf.eth0.forwarding"
	k := bootstraptest.NewKernel("eth0")
	dir := filepath.Join(t.TempDir(), "state")
	first, second := newNeighbour(t, dir, "first", k), newNeighbour(t, dir, "second", k)
	require.Equal(t, "0", first.value(cause))
	first.apply(sysctl.Setting{Key: cause, Value: "1"})
	second.apply(sysctl.Setting{Key: along, Value: "1"})
	first.uninstall()
	require.Equal(t, "0", first.value(cause))
	require.Equal(t, "1", second.value(along))
	_, err := first.settings(sysctl.Setting{Key: cause, Value: "0"}, sysctl.Setting{Key: along, Value: "0"}).Check(t.Context())
	require.ErrorIs(t, err, ledger.ErrConflict)
	second.uninstall()
	require.Equal(t, "0", second.value(along))
	require.NoDirExists(t, dir)

	second.apply(sysctl.Setting{Key: along, Value: "0"})
	_, err = first.settings(sysctl.Setting{Key: along, Value: "1"}).Check(t.Context())
	require.ErrorIs(t, err, ledger.ErrConflict, "nothing was changed, and the other agent wants the value")
	second.uninstall()
	require.NoDirExists(t, dir)
	second.apply(sysctl.Setting{Key: along, Value: "1"})
	second.apply(sysctl.Setting{Key: along, Value: "0"})
	_, err = first.settings(sysctl.Setting{Key: cause, Value: "1"}).Check(t.Context())
	require.ErrorIs(t, err, ledger.ErrConflict, "it would change a value that the other agent wants")
}

// An undo is killed after the kernel has changed a second value that another agent wants, and
// before that is put back: the next undo puts it back.
func TestPLAN14_AValueThatWasDraggedAlongByAKilledUndoing(t *testing.T) {
	const cause, along = "net.ipv4.ip_forward", "net.ipv4.conf.eth0.forwarding"
	k := bootstraptest.NewKernel("eth0")
	dir := filepath.Join(t.TempDir(), "state")
	first, second := newNeighbour(t, dir, "first", k), newNeighbour(t, dir, "second", k)
	first.apply(sysctl.Setting{Key: cause, Value: "1"})
	second.apply(sysctl.Setting{Key: along, Value: "1"})
	require.Panics(t, func() {
		dying := book{opened(t, dir, "first", k, &mortal{Kernel: k, lives: 1}, ""), "sysctl"}
		_ = dying.revertAll(t.Context())
	})
	require.Equal(t, "0", second.value(along))
	first.uninstall()
	require.Equal(t, "0", first.value(cause))
	require.Equal(t, "1", second.value(along))
	second.uninstall()
	require.Equal(t, "0", second.value(along))
	require.NoDirExists(t, dir)
}
