// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/sysctl"
)

// neighbour is an agent of a node that has other agents as well.
type neighbour struct {
	t       *testing.T
	kernel  sysctl.Kernel
	journal *journal.Journal
}

func newNeighbour(t *testing.T, dir, name string, k *bootstraptest.Kernel) neighbour {
	n := neighbour{t: t}
	if k != nil { // nil: the real one
		n.kernel.Files = k
	}
	node := &journal.Node{Dir: dir, Agent: name, NoOwner: true, Handlers: []journal.Handler{sysctl.Handler{Kernel: n.kernel}}}
	j, err := node.Open(t.Context(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	n.journal = j.Step("sysctl")
	return n
}

func (n neighbour) settings(values ...sysctl.Setting) recordedValues {
	_, _, err := n.journal.Enter(n.t.Context(), "check") // records which agents exist
	require.NoError(n.t, err)
	return recordedValues{sysctl.Settings{Values: values, Kernel: n.kernel}, n.journal}
}

func (n neighbour) apply(values ...sysctl.Setting) {
	s := n.settings(values...)
	require.NoError(n.t, s.Apply(n.t.Context()))
	changes, err := s.Check(n.t.Context())
	require.NoError(n.t, err)
	require.Empty(n.t, changes)
}

func (n neighbour) uninstall() {
	_, err := n.journal.RevertAll(n.t.Context())
	require.NoError(n.t, err)
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
	require.Equal(t, []string{`keep net.ipv4.conf.eth0.rp_filter also for this agent: agent "first" has made it`}, changes)
	second.apply(wanted)
	_, err = second.settings(sysctl.Setting{Key: key, Value: "1"}).Check(t.Context())
	require.ErrorIs(t, err, journal.ErrConflict)
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
	require.ErrorIs(t, err, journal.ErrConflict)
	second.uninstall()
	require.Equal(t, "0", second.value(along))
	require.NoDirExists(t, dir)

	second.apply(sysctl.Setting{Key: along, Value: "0"})
	_, err = first.settings(sysctl.Setting{Key: along, Value: "1"}).Check(t.Context())
	require.ErrorIs(t, err, journal.ErrConflict, "nothing was changed, and the other agent wants the value")
	second.uninstall()
	require.NoDirExists(t, dir)
	second.apply(sysctl.Setting{Key: along, Value: "1"})
	second.apply(sysctl.Setting{Key: along, Value: "0"})
	_, err = first.settings(sysctl.Setting{Key: cause, Value: "1"}).Check(t.Context())
	require.ErrorIs(t, err, journal.ErrConflict, "it would change a value that the other agent wants")
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
	require.NoError(t, first.kernel.Set(sysctl.Setting{Key: cause, Value: "0"})) // and killed
	require.Equal(t, "0", second.value(along))
	would, err := first.journal.CheckRevertAll(t.Context())
	require.NoError(t, err)
	require.Equal(t, "set net.ipv4.conf.eth0.forwarding = 1 (is 0)", would[len(would)-1].Change)
	first.uninstall()
	require.Equal(t, "0", first.value(cause))
	require.Equal(t, "1", second.value(along))
	second.uninstall()
	require.Equal(t, "0", second.value(along))
	require.NoDirExists(t, dir)
}
