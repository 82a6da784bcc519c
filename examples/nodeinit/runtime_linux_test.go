// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/cri/critest"
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
	c.info.Store(critest.Containerd(confDir, pluginDirs...))
}

func TestInstallsWhereTheRuntimeLooksAndMovesWithIt(t *testing.T) {
	n := newParallelNode(t)
	// On the node, /usr is mounted read-only.
	c := n.containerd("/var/lib/k3s/net.d", "/usr/lib/cni", "/var/lib/k3s/bin")
	defer n.asItWas()()
	o := n.ok(n.args("apply")...)
	require.NotContains(t, o.stdout, "note:")
	require.Equal(t, "loopback\ntest-cni", n.shell("ls /var/lib/k3s/bin"))
	require.Equal(t, "05-cilium.conflist", n.shell("ls /var/lib/k3s/net.d"))
	n.ok(n.args("check")...)

	c.looksIn("/etc/cni/net.d", "/var/lib/other/bin")
	o = n.exits(2, n.args("check")...)
	require.Contains(t, o.stdout, "remove file /var/lib/k3s/net.d/05-cilium.conflist")
	require.Contains(t, o.stdout, "write file /etc/cni/net.d/05-cilium.conflist")
	n.ok("install-cni", "--plugins", n.plugins, "--cni-conf", n.conf)
	require.Equal(t, "05-cilium.conflist\nloopback\ntest-cni", n.shell("ls /etc/cni/net.d; ls /var/lib/other/bin; ls -d /var/lib/k3s || true"))
	n.ok(n.args("check")...)
	n.ok("uninstall")
}

func TestSaysWhereTheRuntimeLooksInsteadOfAGivenFolder(t *testing.T) {
	n := newParallelNode(t)
	n.containerd("/etc/cni/net.d", "/usr/lib/cni")
	given := n.args("apply", "--cni-bin-dir", "/opt/cni/bin", "--cni-conf-dir", "/etc/other/net.d")
	n.ok(given...)
	o := n.ok(given...)
	require.Contains(t, o.stdout, "cni          unchanged")
	require.Contains(t, o.stdout, `note: the container runtime looks for plugins in ["/usr/lib/cni"], not in "/opt/cni/bin" (--cni-bin-dir`, "even if nothing changes")
	require.Contains(t, o.stdout, `note: the container runtime reads configurations in "/etc/cni/net.d", not in "/etc/other/net.d" (--cni-bin-dir`)
	results := n.ok(append(given, "--output", "json")...).report(t).Results
	require.Len(t, results[len(results)-1].Advice, 2)
	o = n.exits(1, n.args("apply")...)
	require.Contains(t, o.stderr, "no plugin can be installed where the container runtime looks: /usr/lib/cni is on a file system mounted read-only (--cni-bin-dir")
}

func TestOfSeveralRuntimesOneHasToBeNamed(t *testing.T) {
	n := newParallelNode(t)
	n.containerd("/etc/a/net.d", "/opt/a/bin")
	n.runtime("/run/crio/crio.sock", critest.Runtime{Config: "[crio.network]\nnetwork_dir = \"/etc/b/net.d/\"\nplugin_dirs = [\"/opt/b/bin\"]\n"})
	o := n.exits(1, n.args("apply")...)
	require.Contains(t, o.stderr, `["/run/containerd/containerd.sock" "/run/crio/crio.sock"] (give --runtime-endpoint, or --cni-bin-dir and --cni-conf-dir)`)
	n.ok(n.args("apply", "--runtime-endpoint", "unix:///run/crio/crio.sock")...)
	require.Equal(t, "05-cilium.conflist\nloopback\ntest-cni", n.shell("ls /etc/b/net.d; ls /opt/b/bin"))
	n.exits(2, n.args("check", "--cni-bin-dir", "/opt/cni/bin", "--cni-conf-dir", "/etc/cni/net.d")...)
}

func TestWaitsUntilTheRuntimeHasLoadedOurs(t *testing.T) {
	n := newParallelNode(t)
	const theirs = `{"cniVersion":"1.0.0","name":"theirs","plugins":[{"type":"bridge"}]}`
	var place atomic.Value // the folder that the runtime loads
	place.Store("/etc/cni/net.d/05-cilium.conflist")
	n.runtime("/run/containerd/containerd.sock", critest.Runtime{Info: func() (info map[string]string) {
		loaded := []byte(theirs) // until ours is installed
		_ = n.Do(context.Background(), func(context.Context) error {
			if conf, err := os.ReadFile(place.Load().(string)); err == nil {
				loaded = conf
			}
			return nil
		})
		return critest.ContainerdLoaded(loaded, "/etc/cni/net.d", "/opt/cni/bin")()
	}})
	o := n.exits(2, n.args("check", "--wait-loaded", "1m")...)
	require.Contains(t, o.stdout, "cni-loaded   unknown")
	o = n.ok("install-cni", "--plugins", n.plugins, "--cni-conf", n.conf, "--wait-loaded", "1m")
	require.Contains(t, o.stdout, "cni-loaded   unchanged")
	require.Contains(t, n.run(n.args("apply", "--wait-loaded", "1m", "--only", "cni")...).stdout, "cni-loaded   unchanged")

	place.Store("/etc/cni/net.d/nobody-wrote-it")
	o = n.exits(1, n.args("apply", "--wait-loaded", "300ms")...)
	require.Contains(t, o.stderr, `step cni-loaded: apply: the container runtime has not loaded the configuration: it has loaded "theirs" (bridge)`)
	n.ok("uninstall")
}

// Another owner's configuration in the runtime's folder keeps the plugin it names.
func TestCNI8_UninstallKeepsWhatTheRuntimesConfigurationNames(t *testing.T) {
	n := newParallelNode(t)
	n.containerd("/etc/k3s/net.d", "/opt/k3s/bin")
	n.ok("install-cni", "--plugins", n.plugins)
	n.shell("mkdir -p /etc/k3s/net.d")
	n.write("/etc/k3s/net.d/10-theirs.conflist", conflist)
	for _, args := range [][]string{{"uninstall", "--custom-cni-conf"}, {"uninstall-cni"}, {"uninstall"}} {
		o := n.ok(args...)
		require.Equal(t, "loopback\ntest-cni", n.shell("ls /opt/k3s/bin"))
		require.Contains(t, o.stdout, "/opt/k3s/bin/test-cni is still needed: /etc/k3s/net.d/10-theirs.conflist names it")
	}
	n.shell("rm /etc/k3s/net.d/10-theirs.conflist")
	n.ok("uninstall")
	require.Empty(t, n.shell("ls /opt"))
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

// Cleanup searches all of the runtime's folders for an agent's leftovers, whoever has
// others of its files there, and whether a plugin could be installed there or not.
func TestCLN12_CleanupLooksWhereverTheRuntimeDoes(t *testing.T) {
	t.Parallel()
	const k3s = "/var/lib/rancher/k3s"
	for name, dirs := range map[string][]string{ // the first is of configurations
		"k3s":           {k3s + "/agent/etc/cni/net.d", k3s + "/data/cni"},
		"none by names": {"/var/lib/kubelet/networks", "/usr/libexec/plugins", "/etc/kubernetes/plugins"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newParallelNode(t)
			n.containerd(dirs[0], dirs[1:]...)
			var ours []string
			for i, dir := range dirs {
				if !strings.HasPrefix(dir, "/usr/") {
					file := filepath.Join(dir, map[bool]string{true: "05-cilium.conflist", false: "cilium-cni"}[i == 0])
					ours = append(ours, file)
					n.shell("mkdir -p " + dir + "; touch " + file + " " + dir + "/theirs")
				}
			}
			n.shell("ip link add cilium_host type bridge")
			o := n.ok("cleanup", "--all-state", "--dry-run")
			require.NotContains(t, o.stdout, "note:")
			for _, file := range ours {
				require.Contains(t, o.stdout, file)
			}
			n.ok("cleanup", "--bpf-state", "-f")
			n.ok("uninstall-cni", "--write-cni-conf-when-ready=/host"+ours[0])
			n.shell("test ! -e " + ours[0] + "; touch " + ours[0])
			n.ok("cleanup", "--all-state", "-f")
			for i, file := range ours {
				require.Equal(t, "theirs", n.shell("ls "+filepath.Dir(file)), i)
			}
			require.Empty(t, n.shell("ip -o link show cilium_host 2>/dev/null || true"))

			n.shell("touch " + strings.Join(ours, " "))
			n.okEnv(cleanState, "apply", "--only", "cleanup", "--cni-bin-dir", dirs[1])
			for i, file := range ours {
				require.Equal(t, "theirs", n.shell("ls "+filepath.Dir(file)), i)
			}
		})
	}
}

// Where no runtime answers, cleanup says which folders it searched instead; so does it where
// a drop-in is in a folder of any name.
func TestCLN12_CleanupSaysWhereItAssumesTheRuntimeToLook(t *testing.T) {
	n := newParallelNode(t)
	n.shell("mkdir -p /etc/own; touch /etc/own/99-zzz-override_cilium.conf")
	for _, how := range []string{"--dry-run", "-f"} {
		o := n.ok("cleanup", "--all-state", how, "--sysctl-conf-dir", "/etc/own")
		require.Contains(t, o.stdout, "note: no container runtime says where it looks, so it is assumed to be in /opt/cni/bin and /etc/cni/net.d: find the container runtime: no container runtime listens")
		require.Contains(t, o.stdout, "/etc/own/99-zzz-override_cilium.conf")
	}
	require.Empty(t, n.shell("ls /etc/own"))
	require.Contains(t, n.run("cleanup", "--all-state", "-f", "--output", "json").stdout, `"no container runtime says where it looks`)
	o := n.ok("cleanup", "--all-state", "-f", "--cni-bin-dir", "/opt/cni/bin", "--cni-conf-dir", "/etc/cni/net.d")
	require.NotContains(t, o.stdout, "note:", "nothing is assumed")
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
		require.Contains(t, o.stderr, `(give --runtime-endpoint, or --cni-bin-dir and --cni-conf-dir)`)
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
	t.Parallel()
	speaks := strings.Replace(plugin, `"1.0.0"]`, `"1.0.0","1.1.0"]`, 1)
	args := func(n *node, more ...string) []string {
		n.shell("cp " + n.plugins + "/test-cni " + n.plugins + "/cilium-cni")
		return append([]string{"apply", "--source", "file:" + n.source, "--dest", "/run/agent-config", "--plugins", n.plugins, "--cni-template", "none"}, more...)
	}
	for name, c := range map[string]struct {
		runtime *critest.Runtime
		want    string
	}{
		"older":     {&critest.Runtime{Name: "containerd", Version: "1.7.27"}, `"containerd 1.7.27" does not call STATUS of CNI 1.1.0, which it does since 2.0.1`},
		"not there": {nil, "no container runtime listens"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newParallelNode(t)
			if c.runtime != nil {
				c.runtime.Info = critest.Containerd("/etc/cni/net.d", "/opt/cni/bin")
				n.runtime("/run/containerd/containerd.sock", *c.runtime)
			}
			defer n.asItWas()()
			o := n.exits(1, args(n, "--cni-version", "1.1.0")...)
			require.Contains(t, o.stderr, c.want)
			require.Contains(t, o.stderr, "1.0.0 is for every runtime")
		})
	}
	n := newNode(t)
	n.runtime("/run/containerd/containerd.sock", critest.Runtime{Name: "containerd", Version: "v2.0.1", Info: critest.Containerd("/etc/cni/net.d", "/opt/cni/bin")})
	o := n.exits(1, args(n, "--cni-version", "1.1.0")...)
	require.Contains(t, o.stderr, "plugin cilium-cni does not speak cniVersion 1.1.0, only 0.3.1, 1.0.0")
	require.Contains(t, o.stderr, "--cni-version gives the configuration another version")
	require.NoError(t, os.WriteFile(filepath.Join(n.plugins, "test-cni"), []byte(speaks), 0o755))
	for _, version := range []string{"1.1.0", "0.3.1", "1.0.0"} {
		n.ok(args(n, "--cni-version", version)...)
		require.Contains(t, n.shell("cat /etc/cni/net.d/05-cilium.conflist"), `"cniVersion": "`+version+`"`)
	}
	n.ok(args(n)...)
	require.Contains(t, n.shell("cat /etc/cni/net.d/05-cilium.conflist"), `"cniVersion": "1.0.0"`)
	for _, wrong := range [][]string{{"--cni-version=one"}, {"--cni-version=1.0.0", "--cni-template="}, {"--cni-version=1.0.0", "--cni-chain=*"}, {"--cni-version=1.0.0", "--cni-conf=" + n.conf}} {
		require.Equal(t, 64, n.run(args(n, wrong...)...).code, wrong)
	}
}
