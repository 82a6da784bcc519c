// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const rpFilter = "/proc/sys/net/ipv4/conf/all/rp_filter"

// The folder of drop-ins is part of a read-only image, as on several distributions.
func TestSYS3_AReadOnlyFolderOfDropIns(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -p /etc/sysctl.d /run/sysctl.d && mount -n -t tmpfs -o ro tmpfs /etc/sysctl.d && echo 1 > " + rpFilter)
	o := n.run(n.args("check", "--only", "sysctl")...)
	require.Equal(t, 1, o.code, o.stdout)
	for _, says := range []string{
		"/etc/sysctl.d/99-zzz-override_cilium.conf is not written: its directory is read-only: /etc/sysctl.d: read-only file system",
		"--sysctl-conf-dir DIR", "--sysctl-conf-dir= sets the values without a file", "--skip sysctl",
	} {
		require.Contains(t, o.stderr, says)
	}

	want := each("not-run", "cleanup") // the failure is known before anything is changed
	want["sysctl"], want["cni"] = "failed", "blocked"
	o = n.run(n.args("apply", "--output", "json")...)
	require.Equal(t, 1, o.code)
	require.Equal(t, want, o.report(t).statuses())
	for _, remedy := range [][]string{{"--sysctl-conf-dir="}, {"--sysctl-conf-dir", "/run/sysctl.d"}, {"--skip", "sysctl"}} {
		o = n.run(n.args("apply", remedy...)...)
		require.Zero(t, o.code, "%s: %s", remedy, o.stderr)
	}
	require.Equal(t, "0\n", n.read(rpFilter))
	require.Zero(t, n.run("uninstall").code)
	require.Equal(t, "1\n", n.read(rpFilter))
}

func TestSYS3_ValuesWithoutAFile(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("echo 1 > " + rpFilter)
	before := n.state()
	for _, command := range []string{"sysctlfix", "apply"} {
		o := n.run(command, "--sysctl-conf-dir=")
		require.Zero(t, o.code, o.stderr)
		require.Equal(t, "0\n", n.read(rpFilter))
		require.Empty(t, n.shell("ls /etc/sysctl.d 2>/dev/null || true"))
		o = n.run("uninstall")
		require.Zero(t, o.code, o.stderr)
		require.Empty(t, before.Diff(n.state()))
	}
}
