// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/journaltest"
)

// setAsideAndBack sets that many configurations of others aside and restores them, and returns
// the time of each.
func setAsideAndBack(t *testing.T, others int) (aside, back time.Duration) {
	t.Helper()
	n := newNode(t)
	n.ownLoopback()
	for k := range others {
		write(t, n.other(fmt.Sprintf("%05d-other.conflist", k)), fmt.Sprint("of no interest ", k), 0o644)
	}
	before := tree(t, n.root)
	i := n.exclusive()
	begin := worked(t)
	require.NoError(t, i.Apply(t.Context()))
	aside = worked(t) - begin
	requireConverged(t, i, n.root)
	begin = worked(t)
	require.NoError(t, i.Revert(t.Context()))
	back = worked(t) - begin
	require.Equal(t, before, tree(t, n.root))
	return aside, back
}

// worked is the processor time of this process: unlike elapsed time, it does not depend on the
// machine's other load.
func worked(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// The time for a folder of others' files grows linearly with their number.
func TestCNI5_SEC6_ManyOthers(t *testing.T) {
	aside, back := setAsideAndBack(t, 20)
	asideMany, backMany := setAsideAndBack(t, 100)
	t.Logf("20 set aside in %v of a processor's time, back in %v; 100 in %v, back in %v", aside, back, asideMany, backMany)
	require.Less(t, asideMany, 15*aside, "five times as many, and far from 25 times as long")
	require.Less(t, backMany, 15*back)
}

// More files than a node ever has are not set aside, neither at once nor one by one, because
// each later run would have to read their records. Nothing is changed.
func TestCNI5_SEC6_AsidesAreBounded(t *testing.T) {
	const count, size = 100, 4 << 20
	for name, c := range map[string]struct{ before, more, size int }{
		"number":     {0, count + 1, 10},
		"one more":   {count, 1, 10},
		"size":       {0, 5, 1 << 20},
		"more bytes": {4, 1, 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			i := n.exclusive()
			put := func(from, files int) {
				for k := range files {
					write(t, n.other(fmt.Sprintf("%03d-other.conflist", from+k)), strings.Repeat("x", c.size), 0o644)
				}
			}
			require.NoError(t, os.MkdirAll(n.bin, 0o755))
			if c.before > 0 {
				put(0, c.before)
				require.NoError(t, i.Apply(t.Context()))
			}
			put(c.before, c.more)
			before := tree(t, n.root)
			for _, do := range []func() error{
				func() error { _, err := i.Check(t.Context()); return err },
				func() error { return i.Apply(t.Context()) },
			} {
				require.ErrorContains(t, do(), fmt.Sprintf("%s has %d other configurations to set aside, or set aside before, of %d bytes in total; the limits are %d files and %d bytes: remove those",
					n.conf, c.before+c.more, (c.before+c.more)*c.size, count, size))
				require.Equal(t, before, tree(t, n.root))
			}
			for k := range c.more {
				require.NoError(t, os.Remove(n.other(fmt.Sprintf("%03d-other.conflist", c.before+k))))
			}
			require.NoError(t, i.Apply(t.Context()), "files set aside before are no obstacle")
			require.NoError(t, i.Revert(t.Context()))
		})
	}
}

// Oversized files are neither read to the end nor waited for.
func TestCNI5_SEC5_SEC6_HugeFiles(t *testing.T) {
	n := newNode(t)
	write(t, n.other("10-huge.conflist"), "{", 0o644)
	require.NoError(t, os.Truncate(n.other("10-huge.conflist"), 200<<30))
	before := namesOf(t, n)
	i := n.install()
	i.ConfName = "90-ours.conflist"
	require.Contains(t, n.advice(i)[0], "is larger than 1048576 bytes")
	i.Config = chainedOf(cniinstall.Chained{})
	require.ErrorIs(t, i.Apply(t.Context()), cniinstall.ErrTargetMissing)
	i = n.exclusive()
	require.ErrorContains(t, i.Apply(t.Context()), n.other("10-huge.conflist")+" is larger than 1048576 bytes, so it is no CNI configuration: move it away")
	require.Equal(t, before, namesOf(t, n))
	require.Empty(t, journaltest.Entries(t, i.Journal))

	gate := t.TempDir()
	require.NoError(t, unix.Mkfifo(gate+"/cni-uninstall", 0o600))
	_, err := cniinstall.UninstallEnabled(gate)
	require.ErrorContains(t, err, "is a FIFO, not a regular file")
}

// namesOf lists the names on the node without reading any file.
func namesOf(t *testing.T, n node) (names []string) {
	for _, dir := range []string{n.root, n.conf} {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			names = append(names, e.Name())
		}
	}
	return names
}
