// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/sysctl"
)

const shared = "net.ipv4.conf.eth0.rp_filter"

// settings returns the settings of the named step.
func (n node) settings(step string, values ...sysctl.Setting) recordedValues {
	return recordedValues{sysctl.Settings{Values: values, Kernel: sysctl.Kernel{Files: n.Kernel}}, n.book(step)}
}

type step interface {
	Apply(context.Context) error
	Revert(context.Context) error
	CheckRevert(context.Context) ([]string, error)
}

// many returns several steps over one ledger. Three of them set the
// key shared, one after the other.
func (n node) many() []step {
	other := n.dropIn()
	other.Dir, other.Name = filepath.Join(n.root, "new", "dir"), "forwarding.conf"
	other.Settings = append(sysctl.Forwarding(), sysctl.Setting{Key: shared, Value: "2"})
	other.book = n.book("other")
	beside := other
	beside.Name, beside.Settings = "beside.conf", []sysctl.Setting{{Key: "kernel.timer_migration", Value: "0"}}
	beside.book = n.book("beside")
	return []step{
		n.dropIn(),
		n.settings("values", sysctl.Setting{Key: shared, Value: "1"}),
		other,
		beside,
		n.settings("forwarding", sysctl.Setting{Key: shared, Value: "3"}, sysctl.Setting{Key: "net.ipv4.conf.eth1.forwarding", Value: "0"}),
	}
}

// checkRevertAll lists the changes of undoing everything, and revertAll makes them.
func (n node) checkRevertAll() []string {
	n.t.Helper()
	all, err := n.book("none").CheckUndo(n.t.Context(), ledger.Undo{})
	require.NoError(n.t, err)
	return changesOf(all)
}

func (n node) revertAll() error {
	return n.book("none").revertAll(n.t.Context())
}

func newBusyNode(t *testing.T) node {
	t.Helper()
	n := newNode(t, "eth0", "eth1", "lxc1")
	n.PutValue("net.ipv4.conf.all.rp_filter", "1")
	n.PutValue("net.ipv6.conf.eth1.forwarding", "1")
	return n
}

func TestPLAN6_RevertAllUndoesEveryStep(t *testing.T) {
	n := newBusyNode(t)
	before := n.Values()
	require.Empty(t, n.checkRevertAll())
	require.NoError(t, n.revertAll(), "there is no state directory yet")
	for _, a := range n.many() {
		require.NoError(t, a.Apply(t.Context()))
	}
	applied := n.Values()
	lines := n.checkRevertAll()
	require.Equal(t, applied, n.Values())
	dir := filepath.Join(n.root, "new", "dir")
	order := []string{ // newest first, each file before its values, directories when they are empty
		"remove file " + filepath.Join(dir, "beside.conf"),
		"set kernel.timer_migration = 1 (is 0)",
		"remove file " + filepath.Join(dir, "forwarding.conf"),
		"remove directory " + dir,
		"remove directory " + filepath.Dir(dir),
		"set net.ipv4.ip_forward = 0 (is 1)",
		"remove file " + n.file(),
		"set net.ipv4.conf.all.rp_filter = 1 (is 0)",
	}
	require.Equal(t, order, slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !slices.Contains(order, line) }))
	require.Contains(t, lines, "set "+shared+" = 0 (is 3)", "the first value, in one go")

	require.NoError(t, n.revertAll())
	require.Equal(t, before, n.Values())
	require.NoFileExists(t, n.file())
	require.NoDirExists(t, filepath.Join(n.root, "new"))
	require.NoDirExists(t, n.state())
	require.Empty(t, n.checkRevertAll())
}

func TestPLAN6_AKeyThatManyStepsSetComesBackInAnyOrder(t *testing.T) {
	for _, order := range [][]int{{2, 1, 0}, {0, 1, 2}, {1, 0, 2}, {1, 2, 0}} {
		n := newBusyNode(t)
		before := n.Values()
		var steps []recordedValues
		for i := range 3 {
			s := n.settings(fmt.Sprint(i), sysctl.Setting{Key: shared, Value: fmt.Sprint(i + 1)})
			require.NoError(t, s.Apply(t.Context()))
			steps = append(steps, s)
		}
		require.Equal(t, []string{"set " + shared + " = 0 (is 3)"}, n.checkRevertAll())
		if order[0] == 0 {
			require.NoError(t, n.revertAll())
		} else {
			for _, i := range order {
				require.NoError(t, steps[i].Revert(t.Context()))
			}
		}
		require.Equal(t, before, n.Values())
		require.NoDirExists(t, n.state())
	}
}

func TestPLAN6_AKillAtAnyWriteOfRevertAllIsMadeGood(t *testing.T) {
	for kill := 0; kill < 24; kill += 5 {
		n := newBusyNode(t)
		before := n.Values()
		for _, a := range n.many() {
			require.NoError(t, a.Apply(t.Context()))
		}
		func() {
			defer func() { _ = recover() }()
			dying := &mortal{Kernel: n.Kernel, lives: kill}
			_ = book{opened(t, n.state(), "agent", n.Kernel, dying, n.dir()), ""}.revertAll(t.Context())
		}()
		require.NoError(t, n.revertAll(), "killed at write %d", kill)
		require.Equal(t, before, n.Values(), "killed at write %d", kill)
		require.NoDirExists(t, n.state())
	}
}

// A file that cannot be removed would set its values again at the next boot: until it is gone
// they stay recorded.
func TestPLAN6_WithItsFileValuesStay(t *testing.T) {
	n := newNode(t)
	n.PutValue("net.ipv4.conf.all.rp_filter", "2")
	require.NoError(t, n.dropIn().Apply(t.Context()))
	aside := filepath.Join(n.root, "aside")
	require.NoError(t, os.Rename(n.dir(), aside))
	require.NoError(t, os.Symlink("etc", n.dir())) // leads nowhere
	changes, err := n.dropIn().CheckRevert(t.Context())
	require.Empty(t, changes)
	require.ErrorContains(t, err, n.file())
	require.EqualError(t, n.dropIn().Revert(t.Context()), err.Error())
	require.Equal(t, "0", n.Values()["net.ipv4.conf.all.rp_filter"])
	require.NoError(t, os.Remove(n.dir()))
	require.NoError(t, os.Rename(aside, n.dir()))
	require.NoError(t, n.dropIn().Revert(t.Context()))
	require.Equal(t, "2", n.Values()["net.ipv4.conf.all.rp_filter"])
	require.NoDirExists(t, n.state())
}

func TestPLAN6_LinksThatCameLaterComeBackToo(t *testing.T) {
	n := newNode(t, "lxc1")
	before := n.Values()
	d := n.dropIn()
	d.Settings = []sysctl.Setting{{Key: "net.ipv4.ip_forward", Value: "1"}, {Key: "net.ipv4.conf.lxc*.forwarding", Value: "0"}}
	require.NoError(t, d.Apply(t.Context()))
	n.AddLink("lxc2") // forwards, as the default now does
	require.NoError(t, d.Apply(t.Context()))
	require.Equal(t, "0", n.Values()["net.ipv4.conf.lxc2.forwarding"])
	n.AddLink("lxc3")
	one := n.settings("one", sysctl.Setting{Key: "net.ipv4.conf.lxc3.forwarding", Value: "1"})
	n.PutValue("net.ipv4.conf.lxc3.forwarding", "0")
	require.NoError(t, one.Apply(t.Context()))

	require.NoError(t, d.Revert(t.Context()))
	require.Equal(t, "1", n.Values()["net.ipv4.conf.lxc2.forwarding"], "as it was found")
	require.Equal(t, "1", n.Values()["net.ipv4.conf.lxc3.forwarding"], "it belongs to another step")
	require.NoError(t, one.Revert(t.Context()))
	require.Equal(t, "0", n.Values()["net.ipv4.conf.lxc3.forwarding"])
	n.RemoveLink("lxc2")
	n.RemoveLink("lxc3")
	require.Equal(t, before, n.Values())
	require.NoDirExists(t, n.state())
}

// unreadable fails to read a key once another was written.
type unreadable struct {
	*bootstraptest.Kernel
	key, after string
	written    bool
}

func (u *unreadable) WriteFile(name string, value []byte) error {
	u.written = u.written || name == u.after
	return u.Kernel.WriteFile(name, value)
}

func (u *unreadable) ReadFile(name string) ([]byte, error) {
	if u.written && name == u.key {
		return nil, &fs.PathError{Op: "read", Path: name, Err: syscall.EIO}
	}
	return u.Kernel.ReadFile(name)
}

func TestPLAN6_AReadThatFailsDropsAndCompletesNothing(t *testing.T) {
	const forward, filter, dragged = "net/ipv4/ip_forward", "net/ipv4/conf/eth0/rp_filter", "net/ipv4/conf/eth0/forwarding"
	for key, after := range map[string]string{filter: filter, forward: forward, dragged: forward} {
		for _, mayFail := range []bool{false, true} {
			for _, inFile := range []bool{false, true} {
				n := newNode(t, "eth0")
				before := n.Values()
				values := []sysctl.Setting{
					{Key: filter, Value: "2", IgnoreFailure: mayFail},
					{Key: forward, Value: "1", IgnoreFailure: mayFail},
				}
				sick := sysctl.Kernel{Files: &unreadable{Kernel: n.Kernel, key: key, after: after}}
				recorded := book{opened(t, n.state(), "agent", n.Kernel, sick.Files, n.dir()), "values"}
				var a step
				if inFile {
					d := n.dropIn()
					d.Settings, d.Kernel, d.book = values, sick, recorded
					a = d
				} else {
					a = recordedValues{sysctl.Settings{Values: values, Kernel: sick}, recorded}
				}
				require.ErrorIs(t, a.Apply(t.Context()), syscall.EIO, key)
				require.ErrorIs(t, a.Revert(t.Context()), syscall.EIO, key)
				require.NoError(t, n.revertAll(), "it stays recorded")
				require.Equal(t, before, n.Values(), key)
				require.NoDirExists(t, n.state())
			}
		}
	}
}

// limited caps every number at 2.
type limited struct{ *bootstraptest.Kernel }

func (l limited) WriteFile(name string, value []byte) error {
	if n, err := strconv.Atoi(strings.TrimSpace(string(value))); err == nil {
		value = []byte(strconv.Itoa(min(n, 2)))
	}
	return l.Kernel.WriteFile(name, value)
}

func TestSYS9_AValueThatTheKernelMakesAnotherOfComesBack(t *testing.T) {
	n := newNode(t, "eth0")
	before := n.Values()
	s := n.settings("values", sysctl.Setting{Key: shared, Value: "7"})
	s.Kernel.Files = limited{n.Kernel}
	require.ErrorContains(t, s.Apply(t.Context()), "set "+shared+" = 7 (is 2): written, but it is still different")
	require.Equal(t, []string{"set " + shared + " = 0 (is 2)"}, checkRevert(t, s))
	require.NoError(t, s.Revert(t.Context()))
	require.Equal(t, before, n.Values())
	require.NoDirExists(t, n.state())
}
