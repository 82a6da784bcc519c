// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cniinstall"
)

// More files than a node ever has are not set aside, neither at once nor one by one, because
// each later run would have to read their records. Nothing is changed.
func TestCNI5_SEC6_AsidesAreBounded(t *testing.T) {
	const count, size = 100, 4 << 20
	for name, c := range map[string]struct{ before, more, size int }{
		"number":     {0, count + 1, 10},
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
	require.Empty(t, kept(t, i))

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
