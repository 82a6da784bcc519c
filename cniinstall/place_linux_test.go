// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/internal/testns"
)

// The directory chosen is the first that a plugin can be written to and run from, even if it does
// not exist yet.
func TestResolveDirsTheFirstUsablePluginDirectory(t *testing.T) {
	testns.Enter(t, testns.Mount)
	n := newNodeIn(t, testns.TempDir(t))
	mounted := func(name string, flags uintptr) string {
		dir := filepath.Join(n.root, name)
		require.NoError(t, os.Mkdir(dir, 0o755))
		require.NoError(t, unix.Mount("none", dir, "tmpfs", flags, ""))
		return dir
	}
	readOnly, noExec, good := mounted("read-only", unix.MS_RDONLY), mounted("noexec", unix.MS_NOEXEC), mounted("good", 0)
	r := cri.CNI{PluginDirs: []string{filepath.Join(readOnly, "cni"), filepath.Join(noExec, "cni"), filepath.Join(good, "cni/bin")}}
	i := n.auto(r)
	require.Equal(t, filepath.Join(good, "cni/bin"), i.BinDir)

	i.BinDir = ""
	r.PluginDirs = r.PluginDirs[:2]
	_, err := i.resolveDirs(t.Context(), r, nil)
	require.EqualError(t, err, "choose CNI directories: no plugin can be installed where the container runtime looks: "+
		filepath.Join(readOnly, "cni")+" is on a file system mounted read-only\n"+filepath.Join(noExec, "cni")+" is on a file system mounted noexec")
}
