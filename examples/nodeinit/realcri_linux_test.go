// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build realcri

package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/realcri"
)

// Installed where a real containerd looks, whose directories are in a file that its
// configuration imports; moved when these do; loaded, each time.
func TestRealContainerdLoadsWhatIsInstalled(t *testing.T) {
	for _, version := range realcri.Versions {
		t.Run(version, func(t *testing.T) {
			root, err := realcri.Root(t.Context(), os.Stderr, version)
			require.NoError(t, err)
			n := newNode(t)
			for _, place := range []string{"/var/lib/k3s", "/etc/cni"} {
				config := "version = 2\nimports = [\"" + n.work + "/*.toml\"]\n"
				require.NoError(t, os.WriteFile(filepath.Join(n.work, "config"), []byte(config), 0o644))
				imported := "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".cni]\nbin_dir = \"PLACE/bin\"\nconf_dir = \"PLACE/net.d\"\n"
				require.NoError(t, os.WriteFile(filepath.Join(n.work, "cni.toml"), []byte(strings.ReplaceAll(imported, "PLACE", place)), 0o644))
				containerd := n.Command(filepath.Join(root, "usr/bin/containerd"), "--config", filepath.Join(n.work, "config"))
				require.NoError(t, containerd.Start())
				n.shell("until [ -S /run/containerd/containerd.sock ]; do sleep 0.05; done") // it may still be starting

				o := n.run(n.args("apply", "--wait-loaded", "1m")...)
				require.Zero(t, o.code, o.stdout+o.stderr)
				require.Equal(t, "loopback\ntest-cni\n05-cilium.conflist", n.shell("ls "+place+"/bin; ls "+place+"/net.d"))
				require.Zero(t, n.run(n.args("check", "--wait-loaded", "1m")...).code)
				require.NoError(t, containerd.Process.Kill())
				_ = containerd.Wait() // killed
				n.shell("rm /run/containerd/containerd.sock")
			}
			require.Empty(t, n.shell("find /var/lib/k3s -type f"))
			require.Zero(t, n.run("uninstall").code)
			require.Empty(t, n.shell("find /etc/cni -type f"))
		})
	}
}

// Debian's own configuration has another plugin folder than the usual one.
func TestRealContainerdOfDebianLooksElsewhere(t *testing.T) {
	root, err := realcri.Root(t.Context(), os.Stderr, realcri.Debian)
	require.NoError(t, err)
	n := newNode(t)
	require.NoError(t, n.Command(filepath.Join(root, "usr/bin/containerd"), "--config", filepath.Join(root, "etc/containerd/config.toml")).Start())
	n.shell("until [ -S /run/containerd/containerd.sock ]; do sleep 0.05; done")
	o := n.run(n.args("check", "--cni-bin-dir", "/opt/cni/bin")...)
	require.Equal(t, 2, o.code, o.stderr)
	require.Contains(t, o.stdout, `the container runtime looks for plugins in ["/usr/lib/cni"], not in "/opt/cni/bin"`)
}
