// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"encoding/base64"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/cri/critest"
)

const dropIn = "/etc/sysctl.d/99-zzz-override_cilium.conf"

// A kubelet sees the exit status of the last attempt only.
func TestPLAN6_AnEditedDropInIsNamedEachTime(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	require.Zero(t, n.run(n.args("apply")...).code)
	n.shell("echo '# ours' >> " + dropIn)
	kept := dropIn + " is no longer as it was left, so it is kept"
	for _, args := range [][]string{{"uninstall", "--dry-run"}, {"uninstall"}, {"uninstall"}, {"uninstall", "--only", "sysctl"}} {
		o := n.run(args...)
		require.Equal(t, 1, o.code, args)
		require.Contains(t, o.stderr, kept, args)
		require.Contains(t, o.stderr, "or leave them for good: one by nodeinit journal forget OBJECT, all by nodeinit uninstall --accept-kept")
	}
	require.Regexp(t, `sysctl +sysctl/file +"`+dropIn+`" +kept`, n.run("journal").stdout)

	o := n.run("uninstall", "--accept-kept")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, "leave sysctl/file "+dropIn+" for good: "+kept)
	require.Regexp(t, `sysctl/file +left for good .*\n    "`+dropIn+`"\n`, n.run("journal").stdout, "what was accepted is on record")
	o = n.run("uninstall")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, n.read(dropIn), "# ours")

	// The drop-in still says that it was made here, and is no orphan even after the next agent.
	for range 2 {
		require.Zero(t, n.run(n.args("apply")...).code)
		require.NotContains(t, n.read(dropIn), "# ours")
		o = n.run("uninstall")
		require.Zero(t, o.code, o.stderr)
		require.Contains(t, n.read(dropIn), "# ours")
	}
}

// Apply replaces a kept file, and uninstall then restores it.
func TestPLAN6_ApplyGoesOnBesideWhatIsKept(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -p /etc/sysctl.d")
	require.Zero(t, n.run(n.args("apply")...).code)
	n.shell("echo '# theirs' >> " + dropIn)
	require.Equal(t, 1, n.run("uninstall").code)
	for range 2 {
		o := n.run(n.args("apply")...)
		require.Zero(t, o.code, o.stderr)
	}
	o := n.run("uninstall")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, n.read(dropIn), "# theirs\n")
}

func TestPLAN6_WhatIsForgottenIsOnRecord(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	require.Zero(t, n.run("mount-bpffs", "/run/some/bpf").code)
	require.Zero(t, n.run("journal", "forget", "/run/some/bpf").code)
	require.Regexp(t, `bpffs/mount +"/run/some/bpf" +left for good`, n.run("journal").stdout)
	n.shell("umount /run/some/bpf; rmdir /run/some/bpf")
	o := n.run("uninstall")
	require.Zero(t, o.code, o.stderr)
	require.Zero(t, n.run("mount-bpffs", "/run/some/bpf").code)
	require.NotContains(t, n.run("journal").stdout, "left for good", "it is recorded again")
	require.Zero(t, n.run("uninstall").code)
	require.Equal(t, "gone", n.shell("test -e /var/lib/slipway && echo there || echo gone"))
}

// A user's own configuration that names the agent's plugin keeps it, as in uninstall: the
// node's pods would have no network.
func TestCLN12_CleanupKeepsWhatAConfigurationNames(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	const conf, cni = "/etc/cni/net.d/05-cilium.conflist", "/opt/cni/bin/cilium-cni"
	n.shell("mkdir -p /etc/cni/net.d /opt/cni/bin; touch " + cni)
	n.write(conf, `{"cniVersion":"0.3.1","name":"cilium","plugins":[{"type":"cilium-cni"}]}`)
	for _, how := range []string{"--dry-run", "-f"} {
		o := n.run("cleanup", "--all-state", "--custom-cni-conf", how)
		require.Zero(t, o.code, o.stderr)
		require.Contains(t, o.stdout, "nothing to remove\nleft as it is (1)\n  file "+cni+"  ("+conf+" names it)\n")
		n.shell("test -e " + conf + " -a -e " + cni)
	}
	o := n.runEnv(cleanState, "apply", "--only", "cleanup", "--custom-cni-conf")
	require.Zero(t, o.code, o.stderr)
	n.shell("test -e " + cni)
	o = n.run("cleanup", "--all-state", "-f")
	require.Zero(t, o.code, o.stderr)
	n.shell("test ! -e " + conf + " -a ! -e " + cni)
}

// Files of the agent's own installer are not recorded: its pods can still be deleted after a
// cleanup, and the cleanup finishes once they are.
func TestCNI8_CleanupKeepsWhatSandboxesNeed(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	const conf, cni, result = "/etc/cni/net.d/05-cilium.conflist", "/opt/cni/bin/cilium-cni", "/var/lib/cni/results/cilium-0123-eth0"
	n.shell("mkdir -p /etc/cni/net.d /opt/cni/bin /var/lib/cni/results /run/cilium/state; touch " + cni)
	n.write(conf, `{"cniVersion":"0.3.1","name":"cilium","plugins":[{"type":"cilium-cni"}]}`)
	n.write(result, `{"kind":"cniCacheV1","containerId":"0123","networkName":"cilium","config":"`+
		base64.StdEncoding.EncodeToString([]byte(n.read(conf)))+`"}`)
	for range 2 {
		o := n.run("cleanup", "--all-state", "-f")
		require.Equal(t, 1, o.code, o.stdout)
		for _, file := range []string{conf, cni} {
			require.Contains(t, o.stderr, file+" is kept: sandboxes need it for their deletion: 1, by /var/lib/cni/results")
			n.shell("test -e " + file + " -a ! -e /run/cilium")
		}
	}
	n.shell("mv " + result + " /run/result")
	o := n.run("cleanup", "--all-state", "-f")
	require.Zero(t, o.code, o.stderr)
	n.shell("test ! -e " + conf + " -a ! -e " + cni)

	n.shell("mv /run/result " + result + "; touch " + cni)
	require.Zero(t, n.run("cleanup", "--all-state", "-f", "--while-alive").code)
	n.shell("test ! -e " + cni)

	// So is the configuration that the agent wrote itself, unless plugins stay.
	n.write(conf, `{"cniVersion":"0.3.1","name":"cilium","plugins":[{"type":"cilium-cni"}]}`)
	written := "--write-cni-conf-when-ready=/host" + conf
	o = n.run("uninstall-cni", written)
	require.Equal(t, 1, o.code, o.stdout)
	require.Contains(t, o.stderr, conf+" is kept: sandboxes need it for their deletion: 1")
	o = n.run("uninstall-cni", written, "--keep-plugins")
	require.Zero(t, o.code, o.stderr)
	n.shell("test ! -e " + conf)

	// Apply installs it again.
	n.shell("touch " + cni)
	o = n.runEnv(cleanState, "apply", "--only", "cleanup")
	require.Zero(t, o.code, o.stderr)
}

// A node that was cloned from a prepared disk, or whose network was taken over, has results
// of sandboxes that do not exist. Only the runtime knows, and only if it is the host's.
func TestCLN12_ResultsOfSandboxesThatDoNotExist(t *testing.T) {
	t.Parallel()
	const conf, cni, result = "/etc/cni/net.d/05-cilium.conflist", "/opt/cni/bin/cilium-cni", "/var/lib/cni/results/cilium-0123-eth0"
	const unproven = "nothing proves that the host's container runtime listens"
	prepare := func(t *testing.T, serve func(n *node, sandboxes func() []string)) (n *node, listed *atomic.Value) {
		n, listed = newNode(t), &atomic.Value{}
		listed.Store([]string{"0123"})
		serve(n, func() []string { return listed.Load().([]string) })
		n.shell("mkdir -p /etc/cni/net.d /opt/cni/bin /var/lib/cni/results; cp " + n.plugins + "/test-cni " + n.plugins + "/cilium-cni")
		n.write(result, `{"kind":"cniCacheV1","containerId":"0123","networkName":"cilium","config":"`+
			base64.StdEncoding.EncodeToString([]byte(`{"cniVersion":"0.3.1","name":"cilium","plugins":[{"type":"cilium-cni"}]}`))+`"}`)
		n.shell("touch -d '1 hour ago' " + result) // its sandbox is not starting
		return n, listed
	}
	proven := func(n *node, sandboxes func() []string) {
		n.runtime("/run/containerd/containerd.sock", critest.Runtime{Info: critest.Containerd("/etc/cni/net.d", "/opt/cni/bin"), Sandboxes: sandboxes})
	}
	none := func(n *node, _ func() []string) { n.shell("mkdir -p /run/containerd") }
	kept := func(o outcome, file, flag string) {
		t.Helper()
		require.Contains(t, o.stdout+o.stderr, "kept: sandboxes need it for their deletion: 1, by "+result)
		require.Contains(t, o.stdout+o.stderr, file)
		require.Contains(t, o.stdout+o.stderr, flag+" removes it nevertheless")
	}
	cleaned := func(n *node, way string) outcome { return n.run("cleanup", "--all-state", way) }
	leave := func(n *node) {
		n.shell("touch " + cni)
		n.write(conf, `{"cniVersion":"0.3.1","name":"cilium","plugins":[{"type":"cilium-cni"}]}`)
	}

	n, listed := prepare(t, proven)
	leave(n)
	for way, code := range map[string]int{"--dry-run": 0, "-f": 1} {
		o := cleaned(n, way)
		require.Equal(t, code, o.code, o.stderr)
		kept(o, cni, "--while-alive")
	}
	listed.Store([]string{"4567"})
	require.NotContains(t, cleaned(n, "--dry-run").stdout, "kept")
	o := cleaned(n, "-f")
	require.Zero(t, o.code, o.stderr)
	n.shell("test ! -e " + conf + " -a ! -e " + cni + " -a -e " + result)

	listed.Store([]string{"0123"})
	o = n.run("install-cni", "--plugins", n.plugins, "--cni-template", "none")
	require.Zero(t, o.code, o.stderr)
	for _, args := range [][]string{{"uninstall", "--dry-run"}, {"uninstall"}} {
		o = n.run(args...)
		require.Equal(t, 1, o.code, o.stdout)
		kept(o, conf, "--force")
	}
	listed.Store([]string{})
	require.NotContains(t, n.run("uninstall", "--dry-run").stdout, "kept")
	o = n.run("uninstall")
	require.Zero(t, o.code, o.stderr)
	n.shell("test ! -e " + conf + " -a ! -e " + cni)

	leave(n)
	listed.Store([]string{"0123"})
	written := "--write-cni-conf-when-ready=/host" + conf
	kept(n.run("uninstall-cni", written), conf, "--force")
	listed.Store([]string{})
	require.Zero(t, n.run("uninstall-cni", written).code)
	n.shell("test ! -e " + conf)

	n, _ = prepare(t, none)
	leave(n)
	for way, code := range map[string]int{"--dry-run": 0, "-f": 1} {
		o = cleaned(n, way)
		require.Equal(t, code, o.code, o.stderr)
		kept(o, cni, "--while-alive")
	}
	require.Contains(t, o.stderr, "(whether they still exist is unknown: find the container runtime: no container runtime listens)")

	n, _ = prepare(t, none) // any user can listen at a socket in a directory that all may change
	n.shell("chmod 0777 /run/containerd")
	var his net.Listener
	n.do(func() (err error) { his, err = net.Listen("unix", "/run/containerd/containerd.sock"); return err })
	his.(*net.UnixListener).SetUnlinkOnClose(false) // its path is on the node
	critest.Serve(t, his, critest.Runtime{Info: critest.Containerd("/etc/cni/net.d", "/opt/cni/bin")})
	leave(n)
	o = n.run("cleanup", "--all-state", "-f", "--cni-bin-dir", "/opt/cni/bin", "--cni-conf-dir", "/etc/cni/net.d")
	require.Equal(t, 1, o.code, o.stdout)
	require.Contains(t, o.stderr, unproven)
	n.shell("test -e " + conf + " -a -e " + cni)
}
