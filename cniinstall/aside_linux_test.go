// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/testns"
)

// firsts replays renames over the initial names and lists the file a runtime used, whenever
// that changed.
func firsts(names []string, seen [][2]string) (taken []string) {
	look := func() {
		first := "none"
		slices.Sort(names)
		for _, name := range names {
			if ext := filepath.Ext(name); ext == ".conf" || ext == ".conflist" || ext == ".json" {
				first = name
				break
			}
		}
		if len(taken) == 0 || taken[len(taken)-1] != first {
			taken = append(taken, first)
		}
	}
	look()
	for _, r := range seen {
		names = slices.DeleteFunc(names, func(name string) bool { return name == r[0] || name == r[1] })
		if r[1] != "" {
			names = append(names, r[1])
		}
		look()
	}
	return taken
}

// A runtime reloads at each rename. It must never find no configuration, and never a first one
// other than the old first or ours: one step switches to ours, and one step switches back.
func TestCNI5_TheFirstConfigurationIsAlwaysTheOldOneOrOurs(t *testing.T) {
	const ours = "05-cilium.conflist"
	for name, tt := range map[string]struct {
		present []string
		want    []string
	}{
		"none":                  {nil, []string{"none", ours}},
		"later":                 {[]string{"10-a.conf", "20-b.json"}, []string{"10-a.conf", ours}},
		"earlier":               {[]string{"00-a.conflist", "01-b.conf", "04-c.json"}, []string{"00-a.conflist", ours}},
		"earlier and later":     {[]string{"00-a.conflist", "01-b.conf", "10-c.json", "20-d.conf"}, []string{"00-a.conflist", ours}},
		"ours, and one earlier": {[]string{"00-a.conflist", ours, "10-c.json"}, []string{"00-a.conflist", ours}},
		"ours first":            {[]string{ours, "10-c.json"}, []string{ours}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			require.NoError(t, os.MkdirAll(n.conf, 0o755))
			for _, name := range tt.present {
				write(t, n.other(name), "not even valid", 0o644)
			}
			w := watch(t, n.conf)
			i := n.exclusive()
			require.NoError(t, i.Apply(t.Context()))
			require.Equal(t, tt.want, firsts(slices.Clone(tt.present), w.renames()))

			slices.Reverse(tt.want)
			require.NoError(t, i.Revert(t.Context()))
			names := []string{ours}
			for _, name := range tt.present {
				if name != ours {
					names = append(names, name+".cilium_bak")
				}
			}
			require.Equal(t, tt.want, firsts(names, w.renames()))
		})
	}
}

// Ours is reverted last, whatever the order of the records.
func TestCNI5_NeverNoneAfterAnotherName(t *testing.T) {
	for _, again := range []bool{false, true} {
		n := newNode(t)
		write(t, n.other("00-a.conflist"), "a", 0o644)
		write(t, n.other("10-b.conflist"), "b", 0o644)
		older := n.exclusive()
		older.ConfName = "07-cilium.conflist"
		require.NoError(t, older.Apply(t.Context()))
		i := n.exclusive()
		w := watch(t, n.conf)
		require.NoError(t, i.Apply(t.Context()))
		require.Equal(t, []string{"07-cilium.conflist", "05-cilium.conflist"}, firsts([]string{"07-cilium.conflist"}, w.renames()))
		if again {
			write(t, n.other("00-a.conflist"), "a again", 0o644)
			require.NoError(t, i.Apply(t.Context()))
			w.renames()
		}
		require.NoError(t, i.Revert(t.Context()))
		require.Equal(t, []string{"05-cilium.conflist", "00-a.conflist"},
			firsts([]string{"00-a.conflist.cilium_bak", "05-cilium.conflist", "10-b.conflist.cilium_bak"}, w.renames()))
		require.FileExists(t, n.other("10-b.conflist"))
	}
}

// If a file cannot be put back, or ours not be removed, ours stays with its plugins, so that the
// node has a configuration; the next attempt succeeds.
func TestCNI5_CNI8_WhereTheOldCannotComeBackOursStaysWithItsPlugins(t *testing.T) {
	testns.Enter(t, testns.Mount)
	for _, busy := range []string{"10-aws.conflist.cilium_bak", "05-cilium.conflist"} {
		n := newNode(t)
		n.others()
		before := tree(t, n.root)
		i := n.exclusive()
		require.NoError(t, i.Apply(t.Context()))
		require.NoError(t, unix.Mount(n.other(busy), n.other(busy), "", unix.MS_BIND, ""))
		err := i.Revert(t.Context())
		require.ErrorIs(t, err, unix.EBUSY)
		requireContent(t, n.confFile(), agentConf, 0o600)
		require.FileExists(t, n.plugin("cilium-cni"))
		require.NoError(t, unix.Unmount(n.other(busy), 0))
		requireUndone(t, i, n, before)
	}
}

// A file that would block a reader is skipped as a target, named in the advice, and set aside
// like any other.
func TestCNI4_CNI5_CNI6_FIFO(t *testing.T) {
	n := newNode(t)
	require.NoError(t, os.MkdirAll(n.conf, 0o755))
	require.NoError(t, unix.Mkfifo(n.other("00-fifo.conf"), 0o600))
	n.ownLoopback()
	_, err := chainedOf(cniinstall.Chained{}).Render(t.Context(), n.conf)
	require.ErrorIs(t, err, cniinstall.ErrTargetMissing)
	require.ErrorContains(t, err, "00-fifo.conf is a FIFO, not a regular file")
	i := n.install()
	require.Contains(t, n.advice(i)[0], "is a FIFO, not a regular file")
	before := tree(t, n.root)
	i.Exclusive = true
	requireApplied(t, i, n.root)
	requireUndone(t, i, n, before)
}

// Names are bytes: a configuration of others whose name is no text is set aside and comes back.
func TestCNI5_NamesAreBytes(t *testing.T) {
	n := newNode(t)
	n.ownLoopback()
	name := "12-\xff\xfe [0].conf"
	write(t, n.other(name), `{"name":"other","type":"other"}`, 0o640)
	before := tree(t, n.root)
	i := n.exclusive()
	requireApplied(t, i, n.root)
	require.NoFileExists(t, n.other(name))
	require.FileExists(t, n.other(name+".cilium_bak"))
	requireUndone(t, i, n, before)
}
