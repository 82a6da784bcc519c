// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/critest"
)

// runtime starts a container runtime on the node.
func (n *node) runtime(socket string, handler http.Handler) {
	n.t.Helper()
	l, err := n.Listen(socket)
	require.NoError(n.t, err)
	critest.Serve(n.t, l, handler)
}

// containerd is a runtime whose configuration changes.
type containerd struct{ info atomic.Value }

func (n *node) containerd(confDir string, pluginDirs ...string) *containerd {
	n.t.Helper()
	c := &containerd{}
	c.looksIn(confDir, pluginDirs...)
	n.runtime("/run/containerd/containerd.sock", critest.Runtime{Info: func() map[string]string { return c.info.Load().(func() map[string]string)() }})
	return c
}

func (c *containerd) looksIn(confDir string, pluginDirs ...string) {
	c.info.Store(critest.Containerd(nil, confDir, pluginDirs...))
}

// A network whose plugins are gone by the time of the uninstall stays aside, as far as the
// runtime says where it looks; otherwise it comes back.
func TestCLN12_UninstallLeavesANetworkWithoutPluginsAside(t *testing.T) {
	t.Parallel()
	for _, answers := range []bool{true, false} {
		n := newNode(t)
		n.containerd("/etc/cni/net.d", "/opt/cni/bin")
		n.shell("mkdir -p /etc/cni/net.d")
		n.write("/etc/cni/net.d/10-aws.conflist", `{"cniVersion":"0.4.0","name":"aws","plugins":[{"type":"aws-cni"}]}`)
		n.ok("install-cni", "--plugins", n.plugins, "--cni-conf", n.conf, "--cni-exclusive")
		if !answers {
			n.shell("rm /run/containerd/containerd.sock")
		}
		o := n.ok("uninstall")
		require.Equal(t, answers, strings.Contains(o.stdout, "without aws-cni, not found where the runtime looks; mv /etc/cni/net.d/10-aws.conflist.cilium_bak /etc/cni/net.d/10-aws.conflist restores it"), o.stdout)
		require.Equal(t, answers, n.shell("ls /etc/cni/net.d") == "10-aws.conflist.cilium_bak")
		require.Equal(t, answers, n.shell("ls /opt") == "", "loopback is for the network")
		if answers {
			require.Contains(t, n.run("uninstall").stdout, "nothing is recorded")
		}
	}
}

// Cleanup searches all of the runtime's directories for an agent's leftovers, whoever has
// others of its files there, and whether a plugin could be installed there or not.
func TestCLN12_CleanupLooksWhereverTheRuntimeDoes(t *testing.T) {
	n := newParallelNode(t)
	const conf, plugins = "/var/lib/kubelet/networks", "/etc/kubernetes/plugins"
	const ours = conf + "/05-cilium.conflist " + plugins + "/cilium-cni"
	n.containerd(conf, "/usr/libexec/plugins", plugins)
	n.shell("mkdir -p " + conf + " " + plugins + "; touch " + ours + " " + conf + "/theirs " + plugins + "/theirs")
	theirs := func() string { return n.shell("ls " + conf + " " + plugins + " | sort | uniq -c | xargs") }
	o := n.ok("cleanup", "--all-state", "--dry-run")
	require.NotContains(t, o.stdout, "note:")
	for file := range strings.FieldsSeq(ours) {
		require.Contains(t, o.stdout, file)
	}
	n.ok("uninstall-cni", "--write-cni-conf-when-ready=/host"+conf+"/05-cilium.conflist")
	n.shell("test ! -e " + conf + "/05-cilium.conflist; touch " + ours)
	for _, clean := range [][]string{{"cleanup", "--all-state", "-f"}, {"apply", "--only", "cleanup", "--cni-bin-dir", "/usr/libexec/plugins"}} {
		n.okEnv(cleanState, clean...)
		require.Contains(t, theirs(), "2 theirs")
		require.NotContains(t, theirs(), "cilium")
		n.shell("touch " + ours)
	}
}

// Where no runtime answers, cleanup says which directories it searched instead; so does it where
// a drop-in is in a directory of any name.
func TestCLN12_CleanupSaysWhereItAssumesTheRuntimeToLook(t *testing.T) {
	n := newParallelNode(t)
	n.shell("mkdir -p /etc/own; touch /etc/own/99-zzz-override_cilium.conf")
	for _, how := range []string{"--dry-run", "-f"} {
		o := n.ok("cleanup", "--all-state", how, "--sysctl-conf-dir", "/etc/own")
		require.Contains(t, o.stderr, "no container runtime says where it looks, so /opt/cni/bin and /etc/cni/net.d are assumed: find the container runtime: no container runtime listens")
		require.Contains(t, o.stdout, "/etc/own/99-zzz-override_cilium.conf")
	}
	require.Empty(t, n.shell("ls /etc/own"))
	o := n.ok("cleanup", "--all-state", "-f", "--cni-bin-dir", "/opt/cni/bin", "--cni-conf-dir", "/etc/cni/net.d")
	require.Empty(t, o.stderr, "nothing is assumed")
}

// The deployment example's three capabilities are enough to ask the runtime.
func TestPLAN7_TheRuntimeIsAskedFromAContainer(t *testing.T) {
	n := newParallelNode(t)
	n.containerd("/var/lib/k3s/net.d", "/var/lib/k3s/bin")
	o := n.withCapabilities([]string{"sys_admin", "sys_chroot", "sys_ptrace"}, n.args("apply", "--dest", filepath.Join(n.work, "config"))...)
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, "05-cilium.conflist", n.shell("ls /var/lib/k3s/net.d"))
}

// A runtime at a place that another user may change is not asked, and nothing is installed
// where no runtime reads; one anywhere else is not looked at.
func TestSEC11_AnUnprovenRuntimeIsAnError(t *testing.T) {
	n := newParallelNode(t)
	stranger := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a stranger was asked") })
	n.runtime("/var/lib/app/containerd.sock", stranger)
	n.runtime("/run/crio/crio.sock", stranger)
	n.shell("chmod 777 /run/crio")
	before := n.state()
	const says = `/run/crio/crio.sock: nothing proves that the host's container runtime listens (root must listen, and no other user may change the socket's path): `
	for _, command := range []string{"check", "apply"} {
		o := n.exits(1, n.args(command)...)
		require.Contains(t, o.stderr, says)
		require.Contains(t, o.stderr, `nodeinit: --runtime-endpoint: `)
	}
	require.Empty(t, before.Diff(n.state()))
	n.exits(2, n.args("check", "--cni-bin-dir", "/opt/cni/bin", "--cni-conf-dir", "/etc/cni/net.d")...)
	n.containerd("/etc/cni/net.d", "/var/lib/k3s/bin")
	n.ok(n.args("apply")...)
	require.Equal(t, "loopback\ntest-cni", n.shell("ls /var/lib/k3s/bin"))
}

// A configuration that requires STATUS needs a runtime that calls it: on others nothing is
// changed, and the error gives the remedy.
func TestCNI11_AConfigurationForStatusIsCheckedAgainstTheRuntime(t *testing.T) {
	n := newParallelNode(t)
	n.agentPlugin()
	args := func(more ...string) []string {
		return append([]string{"install-cni", "--plugins", n.plugins, "--cni-template", "none"}, more...)
	}
	n.runtime("/run/containerd/containerd.sock", critest.Runtime{Name: "containerd", Version: "1.7.27", Info: critest.Containerd(nil, "/etc/cni/net.d", "/opt/cni/bin")})
	before := n.state()
	o := n.exits(1, args("--cni-version", "1.1.0")...)
	require.Contains(t, o.stderr, `"containerd 1.7.27" does not call STATUS of CNI 1.1.0, which it does since 2.0.1`)
	require.Contains(t, o.stderr, "1.0.0 is for every runtime")
	require.Empty(t, before.Diff(n.state()))
	n.ok(args("--cni-version", "0.3.1")...)
	require.Equal(t, "0.3.1", n.network("/etc/cni/net.d/05-cilium.conflist").CNIVersion)
	n.ok(args()...)
	require.Equal(t, "1.0.0", n.network("/etc/cni/net.d/05-cilium.conflist").CNIVersion)
	for _, wrong := range [][]string{{"--cni-version=one"}, {"--cni-version=1.0.0", "--cni-template="}, {"--cni-version=1.0.0", "--cni-chain=*"}, {"--cni-version=1.0.0", "--cni-conf=" + n.conf}} {
		require.Equal(t, 64, n.run(args(wrong...)...).code, wrong)
	}
}

// CRI-O serves one network only if cni_default_network says so, passes over what lacks a plugin,
// does not tell what it has loaded, and stays ready without any configuration.
func TestCNI6_WhatHoldsOnCRIOIsSaidBeforehand(t *testing.T) {
	n := newParallelNode(t)
	n.shell("mkdir -p /etc/crio/crio.conf.d /etc/cni/net.d")
	n.write("/etc/crio/crio.conf", "[crio.network]\n# network_dir = \"/commented\"\nplugin_dirs = [\n\t\"/usr/libexec/cni\",\n\t\"/opt/cni/bin\",\n]\n")
	n.write("/etc/crio/crio.conf.d/10-net.conf", "[crio.network]\ncni_default_network = \"other\"\n")
	n.write("/etc/cni/net.d/00-crio.conflist", `{"cniVersion":"1.0.0","name":"crio","plugins":[{"type":"bridge"}]}`)
	n.shell(`sed -i '2i case $CNI_COMMAND in ADD) touch /run/lease-$CNI_CONTAINERID;; DEL) rm /run/lease-$CNI_CONTAINERID;; esac' ` + n.plugins + "/test-cni")
	crio := &critest.CRIO{Enter: n.Do}
	n.runtime("/run/crio/crio.sock", crio)
	before := n.state()
	for _, command := range []string{"check", "apply"} {
		o := n.exits(1, n.args(command, "--wait-loaded=10m")...)
		require.Contains(t, o.stderr, `no pod gets its network "test", since CRI-O's cni_default_network is "other": name that one, or change the setting and restart CRI-O`)
		o = n.exits(1, n.args(command, "--runtime-endpoint=/etc/crio/crio.conf")...)
		require.Contains(t, o.stderr, `ask the container runtime at "/etc/crio/crio.conf": nothing proves that the host's container runtime listens: `)
	}
	require.Empty(t, before.Diff(n.state()))

	n.shell("rm /etc/crio/crio.conf.d/10-net.conf")
	require.NoError(t, crio.Restart(t.Context()))
	require.ErrorContains(t, crio.NetworkReady(t.Context()), "no CNI configuration file in /etc/cni/net.d/", "a plugin is missing")
	for _, way := range []outcome{n.exits(2, n.args("check", "--wait-loaded=10m")...), n.ok(n.args("apply", "--wait-loaded=10m")...)} {
		require.Contains(t, way.stdout, `00-crio.conflist sorts before 05-cilium.conflist: containerd uses its network "crio", CRI-O passes it over: plugin missing: bridge is not in `)
		require.Contains(t, way.stdout, "does not report which networks it has loaded (containerd does): nothing is waited for")
	}
	require.NoError(t, crio.NetworkReady(t.Context()))
	require.NoError(t, crio.RunPod(t.Context(), "0123"))
	n.shell("rm /etc/cni/net.d/00-crio.conflist")
	require.Contains(t, n.exits(1, "uninstall", "--runtime-endpoint=/etc/crio/crio.conf").stderr, "--runtime-endpoint: ask the container runtime at ")
	require.Contains(t, n.exits(1, "uninstall").stderr, "sandboxes need it for their deletion: 1, by /var/lib/cni/results/test-0123-eth0: delete the pods")

	require.NoError(t, crio.Restart(t.Context(), "0123"))
	n.shell("test ! -e /run/lease-0123 -a ! -e /var/lib/cni/results/test-0123-eth0")
	require.NoError(t, crio.NetworkReady(t.Context()))
	require.Contains(t, n.ok("uninstall").stderr, "no CNI configuration is left in /etc/cni/net.d, and CRI-O may go on reporting the node as ready: ")
	require.NoError(t, crio.NetworkReady(t.Context()), "so it does")
	require.ErrorContains(t, crio.RunPod(t.Context(), "4567"), "no CNI configuration file in /etc/cni/net.d/")
	require.NoError(t, crio.Restart(t.Context()))
	require.Error(t, crio.NetworkReady(t.Context()), "the remedy")
}
