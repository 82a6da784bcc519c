// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/sysctl"
)

const bad = "net.ipv4.conf.all.rp_filter"

// withBad adds a good value, and one that the kernel refuses.
func withBad(d recordedFile) recordedFile {
	d.Settings = []sysctl.Setting{{Key: "net.ipv4.ip_forward", Value: "1"}, {Key: bad, Value: "loose"}}
	return d
}

func TestSYS4_AValueThatTheKernelRefusesIsInNoFile(t *testing.T) {
	n := newNode(t, "eth0")
	before := n.Values()
	m := &manager{node: n}
	d := withBad(n.dropInWith(m))
	d.Dir = filepath.Join(n.root, "new")
	for range 2 {
		err := d.Apply(t.Context())
		require.ErrorIs(t, err, syscall.EINVAL)
		require.ErrorContains(t, err, "write file "+filepath.Join(d.Dir, ciliumFile)+", and restart it: left off: it needs "+bad)
		require.ErrorContains(t, err, "set "+bad+" = loose")
	}
	require.NoDirExists(t, d.Dir)
	require.Zero(t, m.reloads)
	require.Equal(t, "1", n.Values()["net.ipv4.ip_forward"], "one bad key does not stop the others")
	require.NoError(t, d.Revert(t.Context()))
	require.Equal(t, before, n.Values())
	require.NoDirExists(t, n.state())
}

func TestSYS4_AValueThatMayFailIsInTheFile(t *testing.T) {
	n := newNode(t)
	d := withBad(n.dropIn())
	d.Settings[1].IgnoreFailure = true
	require.NoError(t, d.Apply(t.Context()))
	require.Equal(t, []string{"net.ipv4.ip_forward = 1", "-" + bad + " = loose"}, settingLines(read(t, n.file())))
	require.Equal(t, []string{"set " + bad + " = loose (is 0)"}, check(t, d), "the file is right")
}

// The next boot undoes values that no file sets again.
func TestSYS9_ValuesOfAFileThatWasNotWrittenEndWithTheBoot(t *testing.T) {
	n := newNode(t, "eth0")
	d := withBad(n.dropIn())
	require.Error(t, d.Apply(t.Context()))
	n.Reboot()
	d = withBad(n.dropIn())
	n.PutValue("net.ipv4.ip_forward", "1") // the node's own configuration, since
	require.Empty(t, checkRevert(t, d))
	require.NoError(t, d.Revert(t.Context()))
	require.Equal(t, "1", n.Values()["net.ipv4.ip_forward"])
	require.NoDirExists(t, n.state())
}

// fatal is a manager that kills the process before or after the reload.
type fatal struct {
	manager
	after bool
}

func (f *fatal) Reload(ctx context.Context) error {
	if f.after {
		_ = f.manager.Reload(ctx)
	}
	panic("killed")
}

func TestSYS4_SYS8_SYS9_AKillAtEachStepIsMadeGood(t *testing.T) {
	setUp := func() (node, recordedFile, *manager) {
		n := newNode(t, "eth0", "eth1")
		n.put(t, "usr/50-distribution.conf", "net.ipv4.conf.eth1.rp_filter = 2\nnet.ipv4.conf.eth1.forwarding = 0\n")
		n.PutValue("net.ipv6.conf.eth1.forwarding", "1")
		m := &manager{node: n}
		d := n.dropInWith(m)
		d.Dir = filepath.Join(n.root, "new")
		d.DropIn = d.Reading(d.Dir, filepath.Join(n.root, "usr"))
		d.Settings = append(sysctl.Forwarding(), sysctl.Setting{Key: "net.ipv4.conf.eth0.rp_filter", Value: "2"})
		return n, d, m
	}
	n, d, _ := setUp()
	require.NoError(t, d.Apply(t.Context()))
	want := n.Values()

	kills := map[string]func(d *recordedFile, n node){
		"before the reload": func(d *recordedFile, n node) {
			d.DropIn = d.DropIn.Reloads(sysctl.Instead(&fatal{manager{node: n}, false}))
		},
		"after the reload": func(d *recordedFile, n node) {
			d.DropIn = d.DropIn.Reloads(sysctl.Instead(&fatal{manager{node: n}, true}))
		},
	}
	for lives := range 6 {
		kills[fmt.Sprint("at a write of the kernel, ", lives)] = func(d *recordedFile, n node) { d.Kernel.Files = &mortal{Kernel: n.Kernel, lives: lives} }
	}
	for name, kill := range kills {
		for _, again := range []bool{true, false} {
			n, d, m := setUp()
			before, mortally := n.Values(), d
			kill(&mortally, n)
			require.Panics(t, func() { _ = mortally.Apply(t.Context()) }, "%s: it was not killed", name)
			if again {
				require.NotEmpty(t, check(t, d), name)
				require.NoError(t, d.Apply(t.Context()), name)
				require.Equal(t, 1, m.reloads, "%s: files are reloaded again", name)
				require.Empty(t, check(t, d), name)
				require.Equal(t, want, n.Values(), name)
				require.FileExists(t, filepath.Join(d.Dir, ciliumFile))
			}
			require.NoError(t, d.Revert(t.Context()), name)
			require.Equal(t, before, n.Values(), name)
			require.NoDirExists(t, d.Dir)
			require.NoDirExists(t, n.state())
		}
	}
}
