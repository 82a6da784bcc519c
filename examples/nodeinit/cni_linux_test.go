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

// agentPlugin puts the plugin that templates name into the source folder.
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
	t.Parallel()
	n := newNode(t)
	n.others()
	n.agentPlugin()
	before := n.state()
	o := n.run("apply", "--plugins", n.plugins, "--cni-chain", "*", "--cni-exclusive")
	require.Zero(t, o.code, o.stderr)
	joined := n.network("/etc/cni/net.d/05-cilium.conflist")
	require.Equal(t, "other", joined.Name)
	require.Equal(t, []struct{ Type string }{{"other-cni"}, {"cilium-cni"}}, joined.Plugins)
	require.Equal(t, "05-cilium.conflist\n10-other.conflist.cilium_bak", n.shell("ls /etc/cni/net.d"))
	require.Contains(t, n.run("apply", "--plugins", n.plugins, "--cni-chain", "*", "--cni-exclusive").stdout, "5 unchanged, 2 skipped")

	o = n.run("uninstall")
	require.Zero(t, o.code, o.stderr)
	require.Empty(t, before.Diff(n.state()))
}

// Plugins are installed in two folders on the node, and one plugin is vouched for by the
// caller; then another CNI's configuration names one of ours.
func TestCNI10_SeveralFoldersAndAPluginThatIsNeeded(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	require.NoError(t, os.WriteFile(n.conf, []byte(`{"cniVersion":"1.0.0","name":"test","plugins":[{"type":"test-cni"},{"type":"baked-in"}]}`), 0o600))
	args := []string{"install-cni", "--plugins", n.plugins, "--cni-conf", n.conf, "--also-cni-bin-dir", "/opt/second"}
	o := n.run(args...)
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "plugin missing: baked-in is not in /opt/cni/bin, /opt/second")
	o = n.run(append(args, "--plugins-elsewhere", "baked-in")...)
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, "loopback\ntest-cni", n.shell("ls /opt/cni/bin"))
	require.Equal(t, "loopback\ntest-cni", n.shell("ls /opt/second"))

	n.write("/etc/cni/net.d/10-theirs.conflist", strings.ReplaceAll(conflist, "test-cni", "loopback"))
	o = n.run("uninstall")
	require.Equal(t, 1, o.code, "a folder is kept, since it holds their configuration")
	require.Contains(t, o.stdout, "/opt/second/loopback stays: container runtimes run it for each pod, and /etc/cni/net.d/10-theirs.conflist remains")
	require.Equal(t, "loopback", n.shell("ls /opt/second"))
	n.shell("rm /etc/cni/net.d/10-theirs.conflist")
	o = n.run("uninstall")
	require.Zero(t, o.code, o.stderr)
	require.Empty(t, n.shell("ls /opt"))
}

// Cilium's image has its plugins in two folders.
func TestCNI1_PluginsOfSeveralFolders(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	agents := filepath.Join(n.work, "agents")
	require.NoError(t, os.Mkdir(agents, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(agents, "test-cni"), []byte(plugin+"# of the first\n"), 0o755))
	for _, flags := range [][]string{{"--plugins", agents + "," + n.plugins}, {"--plugins", agents, "--plugins", n.plugins}} {
		o := n.run(append(flags, "install-cni", "--cni-conf", n.conf)...)
		require.Zero(t, o.code, o.stderr)
		require.Equal(t, plugin+"# of the first\n", n.read("/opt/cni/bin/test-cni"))
		require.Equal(t, plugin, n.read("/opt/cni/bin/loopback"))
	}
	require.Zero(t, n.run("uninstall").code)
}

func TestCNI1_LoopbackIsNeededOrNamedOptional(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	require.NoError(t, os.Remove(filepath.Join(n.plugins, "loopback")))
	args := []string{"install-cni", "--plugins", n.plugins, "--cni-conf", n.conf}
	for _, command := range []string{"install-cni", "apply", "check"} {
		args[0] = command
		o := n.run(args...)
		require.Equal(t, 1, o.code)
		require.Contains(t, o.stderr, "container runtimes run loopback for every pod: plugin missing: loopback is not in /opt/cni/bin (--plugins takes several folders, one of which may have it; --optional-plugins loopback goes on without)")
		require.Equal(t, "missing", n.shell("test -e /etc/cni/net.d/05-cilium.conflist && echo there || echo missing"))
	}
	o := n.run(append(args, "--only", "cni", "--optional-plugins", "loopback")...)
	require.Equal(t, 2, o.code, o.stderr)
	require.Contains(t, o.stdout, "CNI plugin loopback is not among those to install, nor in /opt/cni/bin")
}

func TestCNI3_TemplateAndKeyOfTheConfiguration(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.agentPlugin()
	o := n.run("install-cni", "--plugins", n.plugins, "--cni-template", "none", "--cni-log-file", `/run/it's "quoted"`)
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, "cilium", n.network("/etc/cni/net.d/05-cilium.conflist").Name)
	require.Contains(t, n.read("/etc/cni/net.d/05-cilium.conflist"), `it's \"quoted\"`)

	raw, err := json.Marshal(map[string]string{"cni-conf": conflist})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(n.source, raw, 0o644))
	for _, command := range []string{"install-cni", "apply"} {
		o = n.run(command, "--plugins", n.plugins, "--cni-conf-key", "cni-conf", "--source", "file:"+n.source)
		require.Zero(t, o.code, o.stderr)
		require.Equal(t, conflist, n.read("/etc/cni/net.d/05-cilium.conflist"))
	}
	o = n.run("install-cni", "--cni-conf-key", "other", "--source", "file:"+n.source)
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, `"other"`)
}

func TestCNI2_AProvidersPluginIsWaitedFor(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	require.NoError(t, os.WriteFile(n.conf, []byte(`{"cniVersion":"0.3.1","name":"x","plugins":[{"type":"other-cni"},{"type":"test-cni"}]}`), 0o644))
	o := n.run("install-cni", "--plugins", n.plugins, "--cni-conf", n.conf)
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "other-cni")

	cmd := n.Command(binary, "install-cni", "--plugins", n.plugins, "--cni-conf", n.conf, "--cni-wait", "30s")
	require.NoError(t, cmd.Start())
	n.others()
	require.NoError(t, cmd.Wait(), "it is installed")
	require.Equal(t, "x", n.network("/etc/cni/net.d/05-cilium.conflist").Name)
}

func TestNothingToInstallOrGuardIsAUsageError(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	before := n.state()
	for _, command := range []string{"install-cni", "guard"} {
		o := n.run(command, "--owner", "C")
		require.Equal(t, 64, o.code)
		require.Contains(t, o.stderr, "--plugins")
	}
	require.Empty(t, before.Diff(n.state()))
}

func TestCNI6_CheckSaysWhoWins(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.others()
	o := n.run("check", "--only", "cni", "--plugins", n.plugins, "--cni-conf", n.conf, "--cni-conf-name", "20-late.conflist")
	require.Equal(t, 2, o.code, o.stderr)
	require.Contains(t, o.stdout, "10-other.conflist")
	o = n.run("install-cni", "--plugins", n.plugins, "--cni-conf", n.conf, "--cni-conf-name", "20-late.conflist")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, "note: ")
	require.Contains(t, o.stdout, "10-other.conflist")
}

func TestCNI8_GateOfThePreStopHookAndAUsersConfiguration(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	require.Zero(t, n.run("install-cni", "--plugins", n.plugins, "--cni-conf", n.conf).code)
	applied := n.state()
	n.shell("mkdir -p /run/config")
	o := n.run("uninstall-cni", "--config-dir", "/run/config")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stderr, "nothing is done")
	n.shell("rmdir /run/config")
	require.Empty(t, applied.Diff(n.state()))
	n.shell("mkdir /run/config")
	o = n.runEnv([]string{"CILIUM_CUSTOM_CNI_CONF=true"}, "uninstall-cni")
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, conflist, n.read("/etc/cni/net.d/05-cilium.conflist"))
	require.Equal(t, plugin, n.read("/opt/cni/bin/test-cni"), "the configuration names it")

	n.shell("echo true > /run/config/cni-uninstall")
	o = n.run("uninstall-cni", "--config-dir", "/run/config")
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, "gone", n.shell("test -e /etc/cni && echo there || echo gone"))
}

// Run as Cilium's preStop hook, the configuration is removed, even if the agent has written it
// itself, and the plugins stay.
func TestCNI8_ThePreStopHookKeepsThePlugins(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -p /run/config && echo true > /run/config/cni-uninstall")
	hook := []string{"uninstall-cni", "--keep-plugins", "--config-dir", "/run/config"}
	require.Zero(t, n.runEnv([]string{"POD_UID=first"}, "apply", "--plugins", n.plugins, "--cni-conf", n.conf).code)
	o := n.runEnv([]string{"POD_UID=first"}, hook...)
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, "remove file /etc/cni/net.d/05-cilium.conflist")
	require.Equal(t, "gone", n.shell("test -e /etc/cni/net.d/05-cilium.conflist && echo there || echo gone"))
	require.Equal(t, plugin, n.read("/opt/cni/bin/test-cni"))

	const written = "/etc/cni/net.d/10-agents.conflist"
	agent := []string{"POD_UID=second", "WRITE_CNI_CONF_WHEN_READY=/host" + written}
	require.Zero(t, n.runEnv(agent, "apply", "--plugins", n.plugins).code)
	n.write(written, conflist)
	o = n.runEnv([]string{"POD_UID=first", agent[1]}, hook...)
	require.Zero(t, o.code, "the node is the second's: %s", o.stderr)
	require.Equal(t, conflist, n.read(written))
	o = n.runEnv(agent, append(hook, "--dry-run")...)
	require.Equal(t, 2, o.code, o.stderr)
	require.Contains(t, o.stdout, "remove file "+written)
	require.Equal(t, conflist, n.read(written))
	o = n.runEnv(agent, hook...)
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, "gone", n.shell("test -e "+written+" && echo there || echo gone"))
	require.Zero(t, n.runEnv(agent, hook...).code, "already gone is success")
	n.shell("ln -s /etc/passwd " + written)
	o = n.runEnv(agent, hook...)
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, written+" is a symbolic link, which no agent writes")
	n.shell("rm " + written)

	require.Zero(t, n.runEnv(agent, "uninstall").code)
	require.Equal(t, "gone", n.shell("test -e /opt/cni/bin/test-cni && echo there || echo gone"))
}

func TestCNI7_GuardRepairsAndEndsWithTheInstallation(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	args := []string{"--plugins", n.plugins, "--cni-conf", n.conf}
	require.Zero(t, n.run(append([]string{"install-cni"}, args...)...).code)
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
	require.Zero(t, n.run("uninstall-cni").code)
	for lines.Scan() {
		t.Log(lines.Text())
	}
	require.NoError(t, wait(), "it ends by itself")
	require.Equal(t, "gone", n.shell("test -e /etc/cni && echo there || echo gone"))
}

// Pods that still run when the node is taken back can still be deleted.
func TestCNI8_PodsThatStillRunKeepWhatTheyNeed(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	before := n.state()
	require.Zero(t, n.run("install-cni", "--plugins", n.plugins, "--cni-conf", n.conf).code)
	conf, err := os.ReadFile(n.conf)
	require.NoError(t, err)
	var network struct{ Name string }
	require.NoError(t, json.Unmarshal(conf, &network))
	result, err := json.Marshal(map[string]any{"kind": "cniCacheV1", "containerId": "0123", "networkName": network.Name, "config": conf})
	require.NoError(t, err)
	n.shell("mkdir -p /var/lib/cni/results")
	for _, uninstall := range [][]string{{"uninstall"}, {"uninstall-cni"}} {
		n.write("/var/lib/cni/results/agent-0123-eth0", string(result))
		for range 2 {
			o := n.run(uninstall...)
			require.Equal(t, 1, o.code, o.stdout)
			require.Contains(t, o.stderr, "/etc/cni/net.d/05-cilium.conflist is kept: sandboxes need it for their deletion: 1, by /var/lib/cni/results")
			n.shell("test -e /etc/cni/net.d/05-cilium.conflist -a -e /opt/cni/bin/test-cni")
		}
		n.shell("rm /var/lib/cni/results/agent-0123-eth0")
		require.Zero(t, n.run(uninstall...).code)
		n.shell("test ! -e /opt/cni/bin/test-cni")
		require.Zero(t, n.run("install-cni", "--plugins", n.plugins, "--cni-conf", n.conf).code)
	}
	n.write("/var/lib/cni/results/agent-0123-eth0", string(result))
	require.Zero(t, n.run("uninstall", "--force").code)
	n.shell("rm -r /var/lib/cni")
	require.Empty(t, before.Diff(n.state()))
}
