// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// others installs another CNI's plugin and configuration on the node.
func (n *node) others() {
	n.ownLoopback()
	n.shell(`mkdir -p /opt/cni/bin /etc/cni/net.d
cat > /etc/cni/net.d/10-other.conflist <<'END'
{"cniVersion":"0.3.1","name":"other","plugins":[{"type":"other-cni","mtu":1400}]}
END`)
	n.write("/opt/cni/bin/other-cni", plugin)
	n.shell("chmod 755 /opt/cni/bin/other-cni") // last, because tests wait for it
}

// ownLoopback installs the node's own plugin loopback: ours would stay as long as another CNI's
// configuration does.
func (n *node) ownLoopback() {
	n.shell("mkdir -p /opt/cni/bin")
	n.write("/opt/cni/bin/loopback", plugin)
	n.shell("chmod 755 /opt/cni/bin/loopback")
}

// agentPlugin puts the plugin that templates name into the source directory.
func (n *node) agentPlugin() {
	require.NoError(n.t, os.WriteFile(filepath.Join(n.plugins, "cilium-cni"), []byte(plugin), 0o755))
}

type network struct {
	Name, CNIVersion string
	Plugins          []struct{ Type string }
}

func (n *node) network(path string) network {
	n.t.Helper()
	var c network
	require.NoError(n.t, json.Unmarshal([]byte(n.read(path)), &c))
	return c
}

func TestCNI4_CNI5_ChainedAndExclusiveAndBack(t *testing.T) {
	n := newParallelNode(t)
	n.others()
	n.agentPlugin()
	defer n.asItWas()()
	n.ok("apply", "--plugins", n.plugins, "--cni-chain", "*", "--cni-exclusive")
	joined := n.network("/etc/cni/net.d/05-cilium.conflist")
	require.Equal(t, "other", joined.Name)
	require.Equal(t, []struct{ Type string }{{"other-cni"}, {"cilium-cni"}}, joined.Plugins)
	require.Equal(t, "05-cilium.conflist\n10-other.conflist.cilium_bak", n.shell("ls /etc/cni/net.d"))
	require.Contains(t, n.run("apply", "--plugins", n.plugins, "--cni-chain", "*", "--cni-exclusive").stdout, "5 unchanged, 2 skipped")

	n.ok("uninstall")
}

func TestCNI4_InPlaceAndBack(t *testing.T) {
	n := newParallelNode(t)
	n.others()
	n.agentPlugin()
	primary := "/etc/cni/net.d/10-other.conflist"
	before, mode := n.read(primary), n.shell("stat -c %a:%u "+primary)
	args := []string{"apply", "--plugins", n.plugins, "--cni-chain", "*", "--cni-chain-in-place"}
	n.ok(args...)
	require.Equal(t, []struct{ Type string }{{"other-cni"}, {"cilium-cni"}}, n.network(primary).Plugins)
	require.Contains(t, n.run(args...).stdout, "5 unchanged, 2 skipped")
	n.shell("cp " + primary + " /tmp/p && mv /tmp/p " + primary + ".bak && sed -i s/other-cni/other-cni/ " + primary) // its owner writes it anew
	n.ok("uninstall")
	require.Equal(t, before, n.read(primary))
	require.Equal(t, before, n.read(primary+".bak"))
	require.Equal(t, mode, n.shell("stat -c %a:%u "+primary))
	require.Empty(t, n.shell("ls /opt/cni/bin | grep cilium || true"))
}

// Plugins are installed in two directories on the node, and one plugin is vouched for by the
// caller.
func TestCNI10_SeveralDirectoriesAndAPluginElsewhere(t *testing.T) {
	n := newParallelNode(t)
	require.NoError(t, os.WriteFile(n.conf, []byte(`{"cniVersion":"1.0.0","name":"test","plugins":[{"type":"test-cni"},{"type":"baked-in"}]}`), 0o600))
	args := []string{"install-cni", "--plugins", n.plugins, "--cni-conf", n.conf, "--also-cni-bin-dir", "/opt/second"}
	o := n.exits(1, args...)
	require.Contains(t, o.stderr, "plugin missing: baked-in is not in /opt/cni/bin, /opt/second")
	n.ok(append(args, "--plugins-elsewhere", "baked-in")...)
	require.Equal(t, "loopback\ntest-cni", n.shell("ls /opt/cni/bin"))
	require.Equal(t, "loopback\ntest-cni", n.shell("ls /opt/second"))
	n.ok("uninstall")
	require.Empty(t, n.shell("ls /opt"))
}

func TestCNI1_LoopbackIsNeededOrNamedOptional(t *testing.T) {
	n := newParallelNode(t)
	require.NoError(t, os.Remove(filepath.Join(n.plugins, "loopback")))
	args := []string{"--plugins", n.plugins, "--cni-conf", n.conf, "--only", "cni"}
	o := n.exits(1, append(args, "apply")...)
	require.Contains(t, o.stderr, "container runtimes run loopback for every pod: plugin missing: loopback is not in /opt/cni/bin")
	require.Contains(t, o.stderr, "nodeinit: --optional-plugins: ")
	require.Equal(t, 1, strings.Count(n.exits(1, "install-cni", "--cni-template", "none").stderr, "nodeinit: --plugins: "), "a flag helps against both errors")
	n.shell("test ! -e /etc/cni/net.d/05-cilium.conflist")
	o = n.exits(2, append(args, "check", "--optional-plugins", "loopback")...)
	require.Contains(t, o.stdout, "CNI plugin loopback is not among those to install, nor in /opt/cni/bin")
}

func TestCNI3_TemplateAndKeyOfTheConfiguration(t *testing.T) {
	n := newParallelNode(t)
	n.agentPlugin()
	n.ok("install-cni", "--plugins", n.plugins, "--cni-template", "none", "--cni-log-file", `/run/it's "quoted"`)
	require.Equal(t, "cilium", n.network("/etc/cni/net.d/05-cilium.conflist").Name)
	require.Contains(t, n.read("/etc/cni/net.d/05-cilium.conflist"), `it's \"quoted\"`)

	raw, err := json.Marshal(map[string]string{"cni-conf": conflist})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(n.source, raw, 0o644))
	for _, command := range []string{"install-cni", "apply"} {
		n.ok(command, "--plugins", n.plugins, "--cni-conf-key", "cni-conf", "--source", "file:"+n.source)
		require.Equal(t, conflist, n.read("/etc/cni/net.d/05-cilium.conflist"))
	}
	o := n.exits(1, "install-cni", "--cni-conf-key", "other", "--source", "file:"+n.source)
	require.Contains(t, o.stderr, `"other"`)
}

func TestCNI2_AProvidersPluginIsWaitedFor(t *testing.T) {
	n := newParallelNode(t)
	require.NoError(t, os.WriteFile(n.conf, []byte(`{"cniVersion":"0.3.1","name":"x","plugins":[{"type":"other-cni"},{"type":"test-cni"}]}`), 0o644))
	o := n.exits(1, "install-cni", "--plugins", n.plugins, "--cni-conf", n.conf)
	require.Contains(t, o.stderr, "other-cni")

	cmd := n.Command(binary, "install-cni", "--plugins", n.plugins, "--cni-conf", n.conf, "--cni-wait", "30s")
	require.NoError(t, cmd.Start())
	n.others()
	require.NoError(t, cmd.Wait(), "it is installed")
	require.Equal(t, "x", n.network("/etc/cni/net.d/05-cilium.conflist").Name)
}

// Run as Cilium's preStop hook, the configuration is removed, even if the agent has written it
// itself, and the plugins stay.
func TestCNI8_ThePreStopHookKeepsThePlugins(t *testing.T) {
	n := newParallelNode(t)
	n.shell("mkdir -p /run/config && echo true > /run/config/cni-uninstall")
	hook := []string{"uninstall-cni", "--keep-plugins", "--config-dir", "/run/config"}
	n.okEnv([]string{"POD_UID=first"}, "apply", "--plugins", n.plugins, "--cni-conf", n.conf)
	o := n.okEnv([]string{"POD_UID=first"}, hook...)
	require.Contains(t, o.stdout, "remove file /etc/cni/net.d/05-cilium.conflist")
	require.Equal(t, "gone", n.shell("test -e /etc/cni/net.d/05-cilium.conflist && echo there || echo gone"))
	require.Equal(t, plugin, n.read("/opt/cni/bin/test-cni"))

	const written = "/etc/cni/net.d/10-agents.conflist"
	agent := []string{"POD_UID=second", "WRITE_CNI_CONF_WHEN_READY=/host" + written}
	n.okEnv(agent, "apply", "--plugins", n.plugins)
	n.write(written, conflist)
	n.okEnv([]string{"POD_UID=first", agent[1]}, hook...)
	require.Equal(t, conflist, n.read(written))
	o = n.exitsEnv(2, agent, append(hook, "--dry-run")...)
	require.Regexp(t, `agents-conf +would-change .* remove file `+written, o.stdout)
	require.Equal(t, conflist, n.read(written))
	require.Regexp(t, `agents-conf +changed .* remove file `+written, n.okEnv(agent, hook...).stdout)
	require.Equal(t, "gone", n.shell("test -e "+written+" && echo there || echo gone"))
	n.okEnv(agent, hook...) // already gone is success
	n.shell("ln -s /etc/passwd " + written)
	o = n.exitsEnv(1, agent, hook...)
	require.Contains(t, o.stderr, written+" is no regular file")
	n.shell("rm " + written)

	n.okEnv(agent, "uninstall")
	require.Equal(t, "gone", n.shell("test -e /opt/cni/bin/test-cni && echo there || echo gone"))
}

func TestCNI7_GuardRepairsAndEndsWithTheInstallation(t *testing.T) {
	n := newParallelNode(t)
	args := []string{"--plugins", n.plugins, "--cni-conf", n.conf}
	o := n.exits(1, append([]string{"guard"}, args...)...)
	require.Contains(t, o.stderr, "nothing was applied that could be kept as it is: apply it first [ledger.not-applied]", "on a node that was never prepared")
	n.ok(append([]string{"install-cni"}, args...)...)
	start := func() (*bufio.Scanner, func() error, func(os.Signal) error) {
		cmd := n.Command(binary, append([]string{"guard"}, args...)...)
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		return bufio.NewScanner(stdout), cmd.Wait, cmd.Process.Signal
	}
	const path = "/etc/cni/net.d/05-cilium.conflist"
	lines, wait, signal := start()
	for range 3 {
		n.shell("echo '{}' > " + path)
		require.True(t, lines.Scan())
		require.Contains(t, lines.Text(), path)
		require.Equal(t, conflist, n.read(path))
	}
	require.NoError(t, signal(syscall.SIGTERM))
	require.NoError(t, wait())

	lines, wait, _ = start()
	n.shell("rm " + path)
	require.True(t, lines.Scan())
	n.ok("uninstall-cni")
	for lines.Scan() {
	}
	require.NoError(t, wait(), "it ends by itself")
	require.Equal(t, "gone", n.shell("test -e /etc/cni && echo there || echo gone"))
}

// A configuration that is the user's keeps the directories of its own step alone.
func TestCNI8_AKeptConfigurationKeepsNoOtherStepsDirectories(t *testing.T) {
	n := newParallelNode(t)
	n.shell("mkdir /run/cilium")
	n.ok(n.args("apply")...)
	n.ok("uninstall", "--custom-cni-conf")
	n.shell("test -d /etc/cni/net.d; test ! -e /run/agent-config; test ! -e /run/cilium/cgroupv2; test ! -e /etc/sysctl.d")
	o := n.ok("uninstall", "--custom-cni-conf", "--output", "json").report(t).statuses()
	require.Equal(t, "unchanged", o["cni"])
	n.ok("uninstall")
	n.shell("test ! -e /etc/cni")
}
