// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

func TestCLN5_MountAmongPinsIsNotEntered(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	bpf, other := bpfDir(t), bpfDir(t)
	pinAt(t, array(t, "x"), other, "x")
	pinAt(t, array(t, "x"), bpf, "cilium", "x")
	hole := filepath.Join(bpf, "cilium", "hole")
	require.NoError(t, os.Mkdir(hole, 0o700))
	require.NoError(t, unix.Mount(other, hole, "", unix.MS_BIND, ""))

	c := cleanup.Leftovers{Ownership: ours(), Scope: "bpf-state", CgroupRoot: noCgroup, BPFRoots: []string{bpf}}
	inv := inventory(t, c)
	require.Equal(t, []string{"pin " + hole}, objects(inv.Left))

	apply(t, c)
	require.NoFileExists(t, filepath.Join(bpf, "cilium", "x"))
	require.FileExists(t, filepath.Join(other, "x"))
	require.FileExists(t, filepath.Join(hole, "x"))
}

func TestCLN2_PinsInDeepDirectories(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	bpf := bpfDir(t)
	pinAt(t, array(t, "x"), bpf, "cilium", strings.Repeat("d/", 40), "x")
	pinAt(t, array(t, "x"), bpf, "cilium", "z")
	pinAt(t, array(t, "x"), bpf, "tc", "globals", "cilium_x")
	theirs := pinAt(t, array(t, "x"), bpf, "other", "cilium", "x")
	require.NoError(t, os.Symlink(filepath.Join(bpf, "other"), filepath.Join(bpf, "cilium", "link")))
	apply(t, cleanup.Leftovers{Ownership: ours(), Scope: "bpf-state", CgroupRoot: noCgroup, BPFRoots: []string{"/nowhere", "/tmp", bpf}})
	require.NoDirExists(t, filepath.Join(bpf, "cilium"))
	require.FileExists(t, theirs)
}
