// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/internal/record"
	"github.com/slipway-dev/slipway/sysctl"
)

var (
	_ bootstrap.CheckReverter = sysctl.Recorded{}
	_ hostns.Action           = sysctl.Recorded{}
)

func (n node) recorded() sysctl.Recorded {
	return sysctl.Recorded{StateDir: n.state(), Kernel: n.Kernel.Kernel()}
}

// many are actions of all sorts over one state directory. They set
// net.ipv4.conf.eth0.rp_filter one after the other.
func (n node) many() []bootstrap.CheckReverter {
	const shared = "net.ipv4.conf.eth0.rp_filter"
	other := n.dropIn()
	other.Dir, other.Name = filepath.Join(n.root, "new", "dir"), "forwarding.conf"
	other.Settings = append(sysctl.Forwarding(), sysctl.Setting{Key: shared, Value: "2"})
	beside := other
	beside.Name, beside.Settings = "beside.conf", []sysctl.Setting{{Key: "kernel.timer_migration", Value: "0"}}
	return []bootstrap.CheckReverter{
		n.dropIn(),
		sysctl.Settings{Values: []sysctl.Setting{{Key: shared, Value: "1"}}, Kernel: n.Kernel.Kernel(), StateDir: n.state()},
		other,
		beside,
		sysctl.Settings{
			Name: "forwarding", Values: []sysctl.Setting{{Key: shared, Value: "3"}, {Key: "net.ipv4.conf.eth1.forwarding", Value: "0"}},
			Kernel: n.Kernel.Kernel(), StateDir: n.state(),
		},
	}
}

func newBusyNode(t *testing.T) node {
	t.Helper()
	n := newNode(t, "eth0", "eth1", "lxc1")
	n.Put("net.ipv4.conf.all.rp_filter", "1")
	n.Put("net.ipv6.conf.eth1.forwarding", "1")
	return n
}

func TestPLAN6_RecordedUndoesEveryBookWhateverItsName(t *testing.T) {
	n := newBusyNode(t)
	before := n.Values()
	require.Empty(t, check(t, n.recorded()))
	require.NoError(t, n.recorded().Apply(t.Context()))
	require.Empty(t, checkRevert(t, n.recorded()))
	require.NoError(t, n.recorded().Revert(t.Context()), "there is no state directory yet")
	for _, a := range n.many() {
		require.NoError(t, a.Apply(t.Context()))
	}
	foreign, err := record.Open(n.state(), "sysctls")
	require.NoError(t, err)
	require.NoError(t, foreign.Begin(record.Entry{Kind: "sysctl", Object: "net.ipv4.ip_forward"}))

	applied := n.Values()
	lines := checkRevert(t, n.recorded())
	require.Equal(t, applied, n.Values())
	dir := filepath.Join(n.root, "new", "dir")
	require.ElementsMatch(t, []string{
		"remove file " + n.file(),
		"remove file " + filepath.Join(dir, "forwarding.conf"),
		"remove file " + filepath.Join(dir, "beside.conf"),
	}, lines[:3])
	require.Equal(t, []string{"remove directory " + dir, "remove directory " + filepath.Dir(dir)}, lines[3:5])
	require.Subset(t, lines, []string{
		"set net.ipv4.conf.eth0.rp_filter = 2 (is 3)",
		"set net.ipv4.conf.eth0.rp_filter = 1 (is 2)",
		"set net.ipv4.conf.eth0.rp_filter = 0 (is 1)",
		"set net.ipv4.conf.all.rp_filter = 1 (is 0)",
		"set kernel.timer_migration = 1 (is 0)",
		"set net.ipv4.ip_forward = 0 (is 1)",
	})

	require.NoError(t, n.recorded().Revert(t.Context()))
	require.Equal(t, before, n.Values())
	require.NoFileExists(t, n.file())
	require.NoDirExists(t, filepath.Join(n.root, "new"))
	require.Empty(t, checkRevert(t, n.recorded()))
	left, err := os.ReadDir(n.state())
	require.NoError(t, err)
	require.Len(t, left, 1, "a book of another package stays")
	require.NoError(t, foreign.Forget("net.ipv4.ip_forward"))
	require.NoDirExists(t, n.state())
}

// A book may have been written again since, and clocks are set: what the
// kernel has decides which of two actions on one key was the last.
func TestPLAN6_RecordedNeedsNoClockForAKeyThatTwoActionsSet(t *testing.T) {
	for turn := range 3 {
		n := newBusyNode(t)
		before := n.Values()
		const shared = "net.ipv4.conf.eth0.rp_filter"
		for i := range 3 {
			s := sysctl.Settings{
				Name: fmt.Sprint(i), Values: []sysctl.Setting{{Key: shared, Value: fmt.Sprint(i + 1)}},
				Kernel: n.Kernel.Kernel(), StateDir: n.state(),
			}
			require.NoError(t, s.Apply(t.Context()))
			written := time.Unix(int64(1000+(i+turn)%3), 0)
			require.NoError(t, os.Chtimes(filepath.Join(n.state(), fmt.Sprintf("sysctl-%d.json", i)), written, written))
		}
		require.Equal(t, []string{
			"set " + shared + " = 2 (is 3)", "set " + shared + " = 1 (is 2)", "set " + shared + " = 0 (is 1)",
		}, checkRevert(t, n.recorded()))
		require.NoError(t, n.recorded().Revert(t.Context()))
		require.Equal(t, before, n.Values())
		require.NoDirExists(t, n.state())
	}
}

func TestPLAN6_RecordedGoesByTheClockWhereTheKernelDoesNotTell(t *testing.T) {
	n := newBusyNode(t)
	before := n.Values()
	all := forwarding(n.Kernel, n.state()) // drags eth0 from 0 to 1
	one := sysctl.Settings{Name: "one", Values: []sysctl.Setting{{Key: "net.ipv4.conf.eth0.forwarding", Value: "0"}}, Kernel: n.Kernel.Kernel(), StateDir: n.state()}
	for i, s := range []sysctl.Settings{all, one} {
		require.NoError(t, s.Apply(t.Context()))
		written := time.Unix(int64(1000+i), 0)
		require.NoError(t, os.Chtimes(filepath.Join(n.state(), []string{"sysctl-values.json", "sysctl-one.json"}[i]), written, written))
	}
	require.NoError(t, n.recorded().Revert(t.Context()))
	require.Equal(t, before, n.Values())
}

func TestPLAN6_AKillAtAnyWriteOfRecordedIsMadeGood(t *testing.T) {
	for kill := range 24 {
		n := newBusyNode(t)
		before := n.Values()
		for _, a := range n.many() {
			require.NoError(t, a.Apply(t.Context()))
		}
		func() {
			defer func() { _ = recover() }()
			r := n.recorded()
			r.Kernel.Files = &mortal{Kernel: n.Kernel, lives: kill}
			_ = r.Revert(t.Context())
		}()
		require.NoError(t, n.recorded().Revert(t.Context()), "killed at write %d", kill)
		require.Equal(t, before, n.Values(), "killed at write %d", kill)
		require.NoDirExists(t, n.state())
	}
}

func TestRecordedUndoesNothingByGuess(t *testing.T) {
	n := newBusyNode(t)
	for _, a := range n.many() {
		require.NoError(t, a.Apply(t.Context()))
	}
	applied := n.Values()
	broken := n.put(t, "state/sysctl-broken.json", "{")
	for range 2 {
		_, err := n.recorded().CheckRevert(t.Context())
		require.ErrorContains(t, err, broken)
		require.ErrorContains(t, n.recorded().Revert(t.Context()), broken)
		require.Equal(t, applied, n.Values())
		require.FileExists(t, n.file())
	}
	r := n.recorded()
	r.StateDir = "relative"
	require.ErrorContains(t, r.Revert(t.Context()), `"relative"`)
}

func TestWithoutAStateDirThereIsNothingToRevert(t *testing.T) {
	for _, a := range []bootstrap.CheckReverter{sysctl.Recorded{}, sysctl.DropIn{}, sysctl.Settings{}} {
		_, err := a.CheckRevert(t.Context())
		for _, err := range []error{err, a.Revert(t.Context())} {
			require.ErrorIs(t, err, errors.ErrUnsupported)
			require.EqualError(t, err, "no state directory, so nothing is recorded")
		}
	}
}

// The next test's file is on a tmpfs of another boot: what is there is not ours.
func TestPLAN6_CheckRevertSaysNothingOfWhatARebootTook(t *testing.T) {
	n := newNode(t)
	d := n.dropIn()
	require.NoError(t, d.Apply(t.Context()))
	book, err := record.Open(n.state(), "sysctl-"+ciliumFile)
	require.NoError(t, err)
	e, known := book.Lookup(n.file())
	require.True(t, known)
	require.NoError(t, book.Forget(n.file()))
	for boot, want := range map[string][]string{"another": nil, "": {"remove file " + n.file()}} {
		if boot != "" && !bootsAreKnown() {
			continue
		}
		e.Boot = boot
		require.NoError(t, book.Begin(e))
		require.NoError(t, book.Complete(e))
		require.Equal(t, want, checkRevert(t, d))
		require.Equal(t, want, checkRevert(t, n.recorded()))
	}
}

// Half written, and not ours: begun, killed, then written by somebody else.
func TestPLAN6_CheckRevertSaysNothingOfWhatRevertLeaves(t *testing.T) {
	n := newNode(t)
	d := n.dropIn()
	book, err := record.Open(n.state(), "sysctl-"+ciliumFile)
	require.NoError(t, err)
	require.NoError(t, book.BeginFile(n.file(), record.State{Type: "file", SHA256: "ours"}))
	n.put(t, "etc/"+ciliumFile, "# theirs\n")
	require.Empty(t, checkRevert(t, d))
	require.ErrorContains(t, d.Revert(t.Context()), n.file()+" is no longer as it was left, and stays")
	require.FileExists(t, n.file())
}

func bootsAreKnown() bool { _, err := record.BootID(); return err == nil }
