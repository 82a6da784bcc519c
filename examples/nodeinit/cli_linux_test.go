// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/testns"
)

func TestPLAN10_FlagOverEnvironmentOverFile(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir /run/flag /run/env /run/older /run/file")
	n.write("/run/config.yaml", "bpf-root: /run/file\ncgroup-root: /run/file\nsource: [\"env:A_\", \"env:B_\"]\n")
	env := []string{"SLIPWAY_BPF_ROOT=/run/env", "CGROUP_ROOT=/run/older"}

	o := n.runEnv(env, "mount-bpffs", "--config", "/run/config.yaml", "--bpf-root", "/run/flag")
	require.Contains(t, o.stdout, "mount bpf on /run/flag", o.stderr)
	o = n.runEnv(env, "mount-bpffs", "--config", "/run/config.yaml")
	require.Contains(t, o.stdout, "mount bpf on /run/env", o.stderr)
	o = n.runEnv(nil, "mount-bpffs", "--config", "/run/config.yaml")
	require.Contains(t, o.stdout, "mount bpf on /run/file", o.stderr)
	o = n.runEnv(env, "mount-cgroup", "--config", "/run/config.yaml")
	require.Contains(t, o.stdout, "mount cgroup2 on /run/older", o.stderr)
	o = n.runEnv(append(env, "SLIPWAY_CONFIG=/run/config.yaml", "A_X=1", "B_X=2"), "build-config", "--dest", "/run/dest")
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, "2", n.read("/run/dest/x"))
}

// The flags of a second document would not count.
func TestCFG4_TheFlagsAreInOneDocument(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.write("/run/config.yaml", "---\n# ours\n---\nbpf-root: /run/file\n---\n")
	o := n.run("check", "--only", "bpffs", "--config", "/run/config.yaml")
	require.Contains(t, o.stdout, "mount bpf on /run/file", o.stderr)
	n.write("/run/config.yaml", "bpf-root: /run/file\n---\nskip: [cni]\n")
	o = n.run("check", "--config", "/run/config.yaml")
	require.Equal(t, 64, o.code, o.stdout)
	require.Contains(t, o.stderr, "--config: parse /run/config.yaml: line 3 starts a second document")
	n.write("/run/source.yaml", "apiVersion: v1\nkind: ConfigMap\nstringData: {a: b}\n---\n")
	o = n.run("check", "--only", "config", "--source", "file:/run/source.yaml")
	require.Contains(t, o.stderr, "empty file:/run/source.yaml: it has no data (binaryData and stringData are not read)")
}

func TestSingleCommandsConvergeAndTheSecondRunTakesNoLock(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"mount-cgroup", "mount-bpffs", "sysctlfix"} {
		t.Run(command, func(t *testing.T) {
			n := newNode(t)
			before := n.state()
			o := n.run(command, "--output", "json")
			require.Zero(t, o.code, o.stderr)
			require.Equal(t, "changed", o.report(t).Results[0].Status)
			applied := n.state()

			// A directory in the lock's place: a run that needs it fails.
			n.shell("rm /run/slipway.lock && mkdir /run/slipway.lock")
			o = n.run(command, "--output", "json")
			require.Zero(t, o.code, o.stderr)
			require.Equal(t, "unchanged", o.report(t).Results[0].Status)
			n.shell("rmdir /run/slipway.lock")
			require.Empty(t, applied.Diff(n.state()))

			o = n.run("uninstall")
			require.Zero(t, o.code, o.stderr)
			require.Empty(t, before.Diff(n.state()))
		})
	}
}

func TestSYS4_WithoutSystemdValuesAreSetDirectlyAndItSaysSo(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("echo 2 > /proc/sys/net/ipv4/conf/all/rp_filter")
	o := n.run("sysctlfix", "--sysctl-config-file", "99-agent.conf")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, "directly")
	require.Equal(t, "0\n", n.read("/proc/sys/net/ipv4/conf/all/rp_filter"))
	require.Equal(t, "-net.ipv4.conf.lxc*.rp_filter = 0\n-net.ipv4.conf.cilium_*.rp_filter = 0\nnet.ipv4.conf.all.rp_filter = 0\n",
		settings(n.read("/etc/sysctl.d/99-agent.conf")))
}

// settings are the lines of a drop-in without comments.
func settings(content string) string {
	var b strings.Builder
	for line := range strings.Lines(content) {
		if line != "\n" && !strings.HasPrefix(line, "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestSysctlLinesAreTheCallers(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	o := n.run("apply", "--only", "sysctl", "--sysctl", "net.ipv4.ip_forward=1", "--sysctl", "-net.ipv4.conf.none.forwarding = 1")
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, "1\n", n.read("/proc/sys/net/ipv4/ip_forward"))
	require.Equal(t, "net.ipv4.ip_forward = 1\n-net.ipv4.conf.none.forwarding = 1\n", settings(n.read("/etc/sysctl.d/99-zzz-override_cilium.conf")))
}

func TestSYS6_CheckSaysWhatAFilterOnALinkOverrides(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -p /etc/sysctl.d && echo 'net.ipv4.conf.all.rp_filter = 2' > /etc/sysctl.d/99-zzzz-later.conf")
	o := n.run("check", "--only", "sysctl")
	require.Contains(t, o.stdout, "note: ")
	require.Contains(t, o.stdout, "/etc/sysctl.d/99-zzzz-later.conf")
	require.Empty(t, o.stderr)
	o = n.run("apply", "--only", "sysctl", "--output", "json")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, "/etc/sysctl.d/99-zzzz-later.conf", "also when it is applied")
	require.Contains(t, o.stderr, "/etc/sysctl.d/99-zzzz-later.conf", "and in the log")
}

func TestPLAN9_SkippedUnknownAndOnly(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	require.NoError(t, os.Remove(filepath.Join(n.plugins, "test-cni")))
	o := n.run(n.args("check", "--output", "json", "--cni-bin-dir", "/run/cilium/bin")...)
	require.Equal(t, 2, o.code, o.stderr)
	r := o.report(t)
	require.Equal(t, "unknown", r.statuses()["cni"], "an earlier step, which makes /var/run/cilium, may supply its plugin")
	require.Contains(t, r.Results[len(r.Results)-1].Error, "test-cni")

	o = n.run(n.args("apply", "--output", "json", "--skip", "bpffs,cni", "--skip", "cgroup")...)
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, each("changed", "cleanup", "bpffs", "cni", "cgroup"), o.report(t).statuses())
	o = n.run(n.args("apply", "--output", "json", "--only", "bpffs")...)
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, map[string]string{
		"config": "skipped", "cleanup": "skipped", "host-paths": "skipped", "cgroup": "skipped", "sysctl": "skipped",
		"bpffs": "changed", "cni": "skipped",
	}, o.report(t).statuses())
}

// A plugin that no step installs, and an invalid configuration, fail before anything is
// changed, even if all other steps have changes to make.
func TestPLAN17_WhatNoStepCouldMendFailsBeforeTheFirstChange(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.write("/run/bad.conflist", "{oops")
	require.NoError(t, os.Remove(filepath.Join(n.plugins, "test-cni")))
	before := n.state()
	for code, more := range map[string][]string{
		"cni.plugin-missing": nil,
		"cni.config-invalid": {"--cni-conf", "/run/bad.conflist"},
		"cni.target-missing": {"--cni-conf=", "--cni-chain", "other"},
	} {
		for _, command := range []string{"apply", "check"} {
			o := n.run(n.args(command, append(more, "--output", "json")...)...)
			require.Equal(t, 1, o.code, "%s: %s", command, o.stderr)
			r := o.report(t)
			require.Equal(t, "failed", r.statuses()["cni"], "%s %s", command, code)
			require.Equal(t, code, r.Results[len(r.Results)-1].Code)
			require.Empty(t, before.Diff(n.state()), "%s %s", command, code)
		}
	}
	n.write("/run/mended", plugin)
	n.shell("mkdir -p /opt/cni/bin && install -m 755 /run/mended /opt/cni/bin/test-cni")
	o := n.run(n.args("apply")...)
	require.Zero(t, o.code, o.stderr)
}

func TestPLAN8_ConfigurationThatCannotBeHadBlocksTheRest(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	before := n.state()
	for _, command := range []string{"apply", "check"} {
		o := n.run(command, "--source", "file:/run/missing", "--plugins", n.plugins, "--output", "json")
		require.Equal(t, 1, o.code)
		want := each("blocked") // whether to clean up is not known either
		want["config"] = "failed"
		if command == "check" {
			want["preflight"] = "blocked"
		}
		require.Equal(t, want, o.report(t).statuses(), command)
	}
	require.Empty(t, before.Diff(n.state()))
}

func TestPLAN4_LogsAreJSONWhenAsked(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	o := n.run(n.args("apply", "--output", "json", "--log-format", "json")...)
	require.Zero(t, o.code)
	lines := 0
	for scanner := bufio.NewScanner(strings.NewReader(o.stderr)); scanner.Scan(); lines++ {
		require.True(t, json.Valid(scanner.Bytes()), scanner.Text())
	}
	require.GreaterOrEqual(t, lines, 6, "at least one line per step")
}

func TestInstallCNIUnderstandsTheEnvironmentOfOlderInstallers(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -p /opt/host/opt/cni/bin /opt/host/etc/cni/net.d /opt/other/bin && echo old > /opt/host/opt/cni/bin/loopback && echo old > /opt/host/opt/cni/bin/test-cni && chmod 755 /opt/host/opt/cni/bin/loopback")
	args := []string{"install-cni", "--plugins", n.plugins, "--cni-conf", n.conf, "--output", "json"}

	keep := []string{"HOST_PREFIX=/opt/host", "OVERWRITE_CILIUM=false", "CILIUM_CUSTOM_CNI_CONF=true", "BIN_PATH=/unused"}
	o := n.runEnv(keep, args...)
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, "old\n", n.read("/opt/host/opt/cni/bin/test-cni"))
	require.Equal(t, "old\n", n.read("/opt/host/opt/cni/bin/loopback"))
	require.Empty(t, n.shell("ls /opt/host/etc/cni/net.d"))

	o = n.runEnv([]string{"HOST_PREFIX=/opt/host", "CNI_CONF_NAME=10-test.conflist"}, args...)
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, plugin, n.read("/opt/host/opt/cni/bin/test-cni"))
	require.Equal(t, "old\n", n.read("/opt/host/opt/cni/bin/loopback"), "loopback is the distribution's")
	require.Equal(t, conflist, n.read("/opt/host/etc/cni/net.d/10-test.conflist"))

	o = n.runEnv([]string{"CNI_DIR=/opt/other", "WRITE_CNI_CONF_WHEN_READY=/etc/cni/net.d/05-cilium.conflist", "OVERWRITE_LOOPBACK=true"}, args...)
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, plugin, n.read("/opt/other/bin/loopback"))
	require.Equal(t, "missing", n.shell("test -e /etc/cni && echo there || echo missing"), "the agent writes it itself")

	o = n.run("uninstall-cni")
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, "old\n", n.read("/opt/host/opt/cni/bin/test-cni"))
	require.Equal(t, "missing", n.shell("test -e /var/lib/slipway && echo there || echo missing"))
}

// CILIUM_CNI_CONF is the configuration's path for Cilium's cni-install.sh up to 1.13, below the
// host's prefix like the other directories of older installers.
func TestPLAN10_TheConfigurationsPathInTheEnvironmentOfOlderInstallers(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -p /opt/host/opt/cni/bin /opt/host/etc/cni/net.d")
	args := []string{"install-cni", "--plugins", n.plugins, "--cni-conf", n.conf}
	env := []string{"HOST_PREFIX=/opt/host", "CILIUM_CNI_CONF=/opt/host/etc/cni/mine/07-cilium.conflist"}
	o := n.runEnv(env, args...)
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, conflist, n.read("/opt/host/etc/cni/mine/07-cilium.conflist"))
	require.Equal(t, plugin, n.read("/opt/host/opt/cni/bin/test-cni"))
	require.Empty(t, n.shell("ls /opt/host/etc/cni/net.d"))
	require.Zero(t, n.runEnv(env, "uninstall-cni").code)
	require.Equal(t, "missing", n.shell("test -e /opt/host/etc/cni/mine && echo there || echo missing"))

	o = n.runEnv(env, append(args, "--cni-conf-name=08-flag.conflist", "--cni-conf-dir=/opt/flag")...)
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, conflist, n.read("/opt/flag/08-flag.conflist"), "a flag wins")
	for _, wrong := range []string{"/opt/host/etc/cni/net.d/", "net.d/x.conf", "/opt/host/x.txt"} {
		o = n.runEnv([]string{"CILIUM_CNI_CONF=" + wrong}, args...)
		require.Equal(t, 64, o.code, wrong)
		require.Contains(t, o.stderr, "environment variable CILIUM_CNI_CONF", wrong)
	}
	o = n.runEnv(env, append(args, "--host-proc=/proc", "--cni-bin-dir=/opt/bin", "--cni-conf-dir=/opt/flag")...)
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stderr, "HOST_PREFIX, CNI_DIR and CILIUM_CNI_CONF have no use with --host-proc")
}

// Links on the host lead to the host's files, even absolute links, as on NixOS.
func TestCNI1_AHostPrefixHoldsLinks(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell(`mkdir -p /opt/host/nix/store/cni /opt/host/opt /opt/host/etc/static /opt/host/var/net.d /nix/store/cni /var/net.d
ln -s /nix/store/cni /opt/host/opt/cni
ln -s /etc/static/cni /opt/host/etc/cni && ln -s conf /opt/host/etc/static/cni && mkdir /opt/host/etc/static/conf
ln -s ../../../../../../var/net.d /opt/host/etc/static/conf/net.d`)
	o := n.runEnv([]string{"HOST_PREFIX=/opt/host"}, "install-cni", "--plugins", n.plugins, "--cni-conf", n.conf)
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, plugin, n.read("/opt/host/nix/store/cni/bin/test-cni"))
	require.Equal(t, conflist, n.read("/opt/host/var/net.d/05-cilium.conflist"))
	require.Empty(t, n.shell("ls /nix/store/cni /var/net.d | grep -v :$ || true"), "nothing is outside the prefix")
	require.Zero(t, n.run("uninstall-cni").code)
	require.Empty(t, n.shell("ls /opt/host/nix/store/cni /opt/host/var/net.d | grep -v :$ || true"))

	n.shell("rm /opt/host/opt/cni && ln -s cni /opt/host/opt/cni")
	o = n.runEnv([]string{"HOST_PREFIX=/opt/host"}, "install-cni", "--plugins", n.plugins, "--cni-conf", n.conf)
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "/opt/host/opt/cni")
}

func TestCNI8_AnOlderOwnersUninstallDoesNothingAndSaysSo(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	args := []string{"install-cni", "--plugins", n.plugins, "--cni-conf", n.conf}
	require.Zero(t, n.runEnv([]string{"POD_UID=older"}, args...).code)
	require.Zero(t, n.runEnv([]string{"POD_UID=newer"}, args...).code)
	o := n.runEnv([]string{"POD_UID=older"}, "uninstall-cni")
	require.Equal(t, 3, o.code, o.stderr)
	require.Contains(t, o.stderr, `"newer" (generation 2`)
	require.Contains(t, o.stderr, `this is "older"; nothing is changed`)
	n.shell("mkdir /run/config && echo true > /run/config/cni-uninstall")
	o = n.runEnv([]string{"POD_UID=older"}, "uninstall-cni", "--config-dir", "/run/config")
	require.Zero(t, o.code, "a preStop hook reports it without failing: %s", o.stderr)
	require.Contains(t, o.stderr, "nothing is changed")
	require.Equal(t, conflist, n.read("/etc/cni/net.d/05-cilium.conflist"))

	o = n.runEnv([]string{"POD_UID=newer"}, "uninstall-cni")
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, "missing", n.shell("test -e /etc/cni && echo there || echo missing"))
}

// In a rolling update, the older pod's uninstall comes after the newer one's apply.
func TestCNI8_AnOlderOwnersUninstallLeavesTheWholeNodeAlone(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	before := n.state()
	require.Zero(t, n.runEnv([]string{"POD_UID=older"}, n.args("apply")...).code)
	o := n.runEnv([]string{"POD_UID=newer"}, n.args("apply")...)
	require.Zero(t, o.code, o.stderr)
	applied := n.state()
	for _, args := range [][]string{{"uninstall", "--dry-run", "--output", "json"}, {"uninstall", "--output", "json"}, {"uninstall"}} {
		o = n.runEnv([]string{"POD_UID=older"}, args...)
		require.Equal(t, 3, o.code, o.stderr)
		require.Contains(t, o.stderr, "nothing is changed")
		require.Contains(t, o.stdout, "not-run")
		require.Empty(t, applied.Diff(n.state()))
	}
	o = n.runEnv([]string{"POD_UID=newer"}, "uninstall")
	require.Zero(t, o.code, o.stderr)
	require.Empty(t, before.Diff(n.state()))
}

func TestCNI8_AlsoOneWhoChangedNothingBecomesTheOwner(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	for _, command := range []string{"mount-cgroup", "sysctlfix"} {
		require.Zero(t, n.run(command, "--owner", "A").code)
		o := n.run(command, "--owner", "B")
		require.Zero(t, o.code, o.stderr)
		require.Contains(t, o.stdout, "unchanged")
		applied := n.state()
		o = n.run("uninstall", "--owner", "A")
		require.Equal(t, 3, o.code, o.stderr)
		require.Contains(t, o.stderr, "nothing is changed")
		o = n.run("apply", "--only", "host-paths", "--owner", "A")
		require.Equal(t, 3, o.code, o.stderr)
		require.Empty(t, applied.Diff(n.state()))
		require.Zero(t, n.run("uninstall", "--owner", "B").code)
	}
}

func TestUninstallNeedsNoneOfTheFlagsOfApply(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	before := n.state()
	require.Zero(t, n.run(n.args("apply", "--sysctl-config-file", "50-mine.conf", "--sysctl", "net.ipv4.ip_forward=1",
		"--bpf-root", "/run/bpf", "--cgroup-root", "/run/cg", "--cni-conf-name", "10-a.conflist", "--cni-bin-dir", "/opt/bin")...).code)
	o := n.run("uninstall")
	require.Zero(t, o.code, o.stderr)
	require.Empty(t, before.Diff(n.state()))
}

// A folder may also be an agent's: files beside the journal stay.
func TestPLAN6_UninstallLeavesWhatIsBesideTheJournal(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -m 700 /var/lib/slipway")
	n.write("/var/lib/slipway/theirs.json", `{"schema":1,"entries":[]}`)
	require.Zero(t, n.run("mount-bpffs").code)
	o := n.run("uninstall")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, "unmount bpf from /sys/fs/bpf")
	require.Equal(t, "theirs.json", n.shell("ls -A /var/lib/slipway"))
}

func TestUninstallWhereNothingWasRecordedCreatesNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	before := n.state()
	for _, dir := range []string{"/var/lib/slipway", "/run/missing/state"} {
		o := n.run("uninstall", "--state-dir", dir)
		require.Zero(t, o.code, o.stderr)
	}
	require.Empty(t, before.Diff(n.state()))
}

func TestTheCommandLineIsNotGuessed(t *testing.T) {
	dir := t.TempDir()
	file := func(content string) string {
		path := filepath.Join(dir, "config.yaml")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"sources that name none": {[]string{"build-config", "--source", ","}, "--source is given and names nothing"},
		"only no step":           {[]string{"check", "--only", ""}, "--only is given and names nothing"},
		"empty path":             {[]string{"mount-cgroup", ""}, `path "": must be an absolute path`},
		"null in the file":       {[]string{"check", "--config", file("dest:\n")}, "line 1: dest: must be a value"},
		"owner":                  {[]string{"check", "--owner", "caf\xe9"}, `--owner "caf\xe9": owner "caf\xe9" is not UTF-8`},
		"uninstall of no record": {[]string{"uninstall-cni", "--state-dir", ""}, "--state-dir is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.args[0] == "uninstall-cni" {
				testns.Root(t)
			}
			if strings.Contains(name, "file") {
				file("dest:\n")
			}
			o := here(t, nil, tc.args...)
			require.Equal(t, 64, o.code, o.stderr)
			require.Contains(t, o.stderr, tc.says)
		})
	}
	o := here(t, []string{"SLIPWAY_OUTPU=json"}, "cleanup")
	require.Contains(t, o.stderr, "SLIPWAY_OUTPU")
}

func TestListsInTheFileAndTheEnvironmentKeepTheirParts(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.write("/run/config.yaml", "sysctl: [net.ipv4.ip_forward=1, 'net.ipv4.tcp_rmem=4096 131072 6291456']\nowner: 0123\n")
	want := "net.ipv4.ip_forward = 1\nnet.ipv4.tcp_rmem = 4096 131072 6291456\n"
	o := n.run("apply", "--only", "sysctl", "--config", "/run/config.yaml")
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, want, settings(n.read("/etc/sysctl.d/99-zzz-override_cilium.conf")))
	require.Contains(t, n.read("/var/lib/slipway/cilium.journal"), `"0123"`)

	o = n.runEnv([]string{"SLIPWAY_SYSCTL=net.ipv4.ip_forward=0\nnet.ipv4.tcp_rmem=4096 131072 6291456"}, "apply", "--only", "sysctl")
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, "0\n", n.read("/proc/sys/net/ipv4/ip_forward"))
}

func TestPLAN4_OneDocumentAlsoWhereNoPlanCouldBeBuilt(t *testing.T) {
	for _, args := range [][]string{
		{"check", "--plugins", "/nonexistent"},
		{"apply", "--cni-conf", "/nonexistent"},
		{"explain", "--source", "file:/nonexistent"},
	} {
		o := here(t, nil, append(args, "--output", "json")...)
		require.Equal(t, 1, o.code, o.stderr)
		r := o.report(t)
		require.NotEmpty(t, r.Results)
		if args[0] == "apply" && os.Geteuid() != 0 { // which blames no step
			require.Contains(t, r.Error, "needs root")
			continue
		}
		failed := r.Results[len(r.Results)-1]
		require.Equal(t, "failed", failed.Status)
		require.NotEmpty(t, failed.Error)
	}
}

func TestCG1_RepairOfAContainersCgroup(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell(`mkdir -p /sys/fs/cgroup/pod /run/cilium/cgroupv2 && mount -n --bind /sys/fs/cgroup/pod /run/cilium/cgroupv2`)
	o := n.run("mount-cgroup")
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "/run/cilium/cgroupv2")
	o = n.run("mount-cgroup", "--cgroup-repair")
	require.Zero(t, o.code, o.stderr)
	require.Zero(t, n.run("mount-cgroup").code)
}

func TestBPF3_AMountThatNoOtherProcessWouldSeeIsRefusedWhereAsked(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	before := n.state()
	script := "unshare --mount --propagation private " + binary + " mount-bpffs --bpf-shared 2>&1 || true"
	out := n.shell(script)
	require.Contains(t, out, "mountPropagation: Bidirectional")
	require.Contains(t, out, "mount --make-shared")
	require.Empty(t, before.Diff(n.state()))
	require.Zero(t, n.run("mount-bpffs", "--bpf-shared").code)
}

func TestBPF4_FallbackOfTheCommand(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mount -n -t tmpfs tmpfs /sys/fs/bpf")
	o := n.run("mount-bpffs", "--bpf-fallback", "/run/bpf")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, "mount bpf on /run/bpf")
}

func TestCLN8_CleanupWithinApplyConverges(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	for name, ask := range map[string]func() outcome{
		"environment": func() outcome {
			return n.runEnv([]string{"CILIUM_ALL_STATE=true"}, n.args("apply", "--output", "json")...)
		},
		"configuration": func() outcome { return n.run(n.args("apply", "--output", "json")...) },
	} {
		n.shell("mkdir -p /run/cilium/state && touch /run/cilium/state/old && ip link add lxc_health type veth peer name cilium_test || true")
		if name == "configuration" {
			require.NoError(t, os.WriteFile(n.source, []byte("clean-cilium-state: \"true\"\n"), 0o644))
		}
		o := ask()
		require.Zero(t, o.code, o.stderr)
		require.Equal(t, "changed", o.report(t).statuses()["cleanup"], name)
		require.Equal(t, "gone", n.shell("test -e /run/cilium/state && echo there || echo gone"))
		require.Empty(t, n.shell("ip -br link show | grep -E 'lxc|cilium' || true"))
		o = ask()
		require.Zero(t, o.code, o.stderr)
		require.Equal(t, each("unchanged"), o.report(t).statuses(), name)
	}
}

// annotated is an API server on the node, with its Node.
func (n *node) annotated(annotations string) *httptest.Server {
	n.t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"node1","annotations":%s}}`, annotations)
	}))
	n.do(func() (err error) {
		require.NoError(n.t, server.Listener.Close())
		server.Listener, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	})
	server.Start()
	n.t.Cleanup(server.Close)
	return server
}

// A ConfigMap made of files has a newline at the end of each value, which is no part of a
// path; the agent gets it as it is.
func TestCFG12_BlanksAroundAValueThatIsInterpretedDoNotCount(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.write("/run/config.yaml", "bpf-root: \"/run/bpf\\n\"\nwait-loaded: \" 0s \"\nplugins: [\""+n.plugins+"\\n\"]\n")
	n.write("/run/source.yaml", "cgroup-root: \"/run/cg\\n\"\nmtu: \"9000\\n\"\nkube-proxy-replacement: \"true\\n\"\n")
	o := n.runEnv([]string{"SLIPWAY_TIMEOUT= 60s\n", "SLIPWAY_SYSCTL_CONF_DIR=/run/sysctl.d\n", "SLIPWAY_ONLY=config,cgroup,bpffs,sysctl\n", "SLIPWAY_AGENT=\n"},
		"apply", "--config", "/run/config.yaml", "--source=file:/run/source.yaml\n", "--dest", "/run/dest\n", "--cgroup-root-key=cgroup-root\n", "--wait-for-kube-proxy=1h\n", "--output=json\n")
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, "skipped", o.report(t).statuses()["kube-proxy"])
	require.Equal(t, "9000\n", n.read("/run/dest/mtu"))
	require.Equal(t, "/run/bpf /run/cg", n.shell("grep -oE ' /run/(bpf|cg) ' /proc/mounts | sort | xargs"))
	require.Equal(t, "/run/sysctl.d/99-zzz-override_cilium.conf", n.shell("ls /run/sysctl.d/*"))
	o = n.run("run", "--only", " bpffs, cgroup ", "--bpf-root= /run/bpf", "--drop-capabilities", "CHOWN, SYS_BOOT", "--", "printf", "%s", " kept\n")
	require.Equal(t, " kept\n", o.stdout, o.stderr)
}

// What asks for a removal in another spelling removes nothing, and the report names it.
func TestCLN10_OnlyTrueDestroysAndAnythingElseIsNamed(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -p /run/cilium/state && touch /run/cilium/state/precious")
	cleanup := func(env []string, source string) outcome {
		require.NoError(t, os.WriteFile(n.source, []byte(source), 0o644))
		return n.runEnv(env, "apply", "--only", "config,cleanup", "--source", "file:"+n.source, "--dest", "/run/dest", "--output", "json")
	}
	for name, c := range map[string]struct {
		env, source string
		named       string // empty: nothing is
	}{
		"a newline":            {"X=", "clean-cilium-state: \"true\\n\"\n", `clean-cilium-state = "true\n": only "true" counts`},
		"in capitals":          {"CILIUM_ALL_STATE=True", "mtu: 1\n", `CILIUM_ALL_STATE = "True": only "true" counts`},
		"a number":             {"CLEAN_CILIUM_BPF_STATE=1", "mtu: 1\n", `CLEAN_CILIUM_BPF_STATE = "1": only "true" counts`},
		"false, and a newline": {"X=", "clean-cilium-state: \"false\\n\"\n", ""},
		"false":                {"CILIUM_ALL_STATE=false", "clean-cilium-bpf-state: false\n", ""},
		"empty":                {"CILIUM_ALL_STATE=", "clean-cilium-bpf-state: ''\n", ""},
		"beside one of two":    {"CILIUM_BPF_STATE=true", "clean-cilium-state: yes\n", `clean-cilium-state = "yes": only "true" counts`},
	} {
		o := cleanup([]string{c.env}, c.source)
		require.Zero(t, o.code, o.stderr)
		require.Equal(t, "precious", n.shell("ls /run/cilium/state"), name)
		for _, r := range o.report(t).Results {
			if said := strings.Join(append(r.Advice, r.Reason), "; "); r.Step == "cleanup" && c.named != "" {
				require.Contains(t, said, "ignored: "+c.named, name)
			} else {
				require.NotContains(t, said, "ignored", name)
			}
		}
	}
	o := n.runEnv([]string{"CILIUM_ALL_STATE=yes"}, "cleanup", "-f")
	require.Zero(t, o.code)
	require.Contains(t, o.stderr, `nothing selected, so nothing is done: `)
	require.Contains(t, o.stderr, `ignored: CILIUM_ALL_STATE = "yes": only "true" counts`)
}

// More people may annotate a Node than may destroy a node's state.
func TestCLN10_ANodesAnnotationDestroysNothing(t *testing.T) {
	n := newNode(t)
	server := n.annotated(`{"config.cilium.io/clean-cilium-state":"true","config.cilium.io/clean-cilium-bpf-state":"true","config.cilium.io/mtu":"9000"}`)
	n.shell("mkdir -p /run/cilium/state && touch /run/cilium/state/precious")
	apply := func(sources ...string) outcome {
		args := []string{"apply", "--dest", "/run/agent-config", "--output", "json", "--only", "config,cleanup", "--k8s-api-server-urls", server.URL, "--node-name", "node1"}
		o := n.run(append(args, sources...)...)
		require.Zero(t, o.code, o.stderr)
		return o
	}
	for _, sources := range [][]string{{"--source", "file:" + n.source, "--source", "node"}, {"--source", "node"}} {
		o := apply(sources...)
		require.Equal(t, "skipped", o.report(t).statuses()["cleanup"])
		require.Contains(t, o.stderr, "ignored: clean-cilium-state = true from node:node1 annotations: a key that destroys counts from")
		require.Contains(t, o.stderr, "ignored: clean-cilium-bpf-state = true from node:node1 annotations")
		require.Equal(t, "9000", n.read("/run/agent-config/mtu"), "the Node is heard about everything else")
		require.Equal(t, "precious", n.shell("ls /run/cilium/state"))
	}
	require.NoError(t, os.WriteFile(n.source, []byte("clean-cilium-state: \"true\"\n"), 0o644))
	o := apply("--source", "file:"+n.source, "--source", "node")
	require.NotContains(t, o.stderr, "ignored: clean-cilium-state ")
	require.Equal(t, "changed", o.report(t).statuses()["cleanup"])
	require.Equal(t, "gone", n.shell("test -e /run/cilium/state && echo there || echo gone"))
}

func TestCLN2_LeftoversOfAWSAreAnActionOfTheirOwn(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("iptables -t nat -N AWS-SNAT-CHAIN-0 && iptables -t nat -A POSTROUTING -j AWS-SNAT-CHAIN-0 && iptables -t nat -N CILIUM_POST_nat && iptables -t nat -N KUBE-SERVICES")
	chains := func() string { return n.shell("iptables -t nat -S | grep -E 'AWS|CILIUM|KUBE' || true") }
	before := chains()
	o := n.run("cleanup", "--aws-leftovers", "--dry-run")
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, before, chains())
	o = n.run("cleanup", "--aws-leftovers", "-f")
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, "-N CILIUM_POST_nat\n-N KUBE-SERVICES", chains())
	o = n.run("cleanup", "--all-state", "-f")
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, "-N KUBE-SERVICES", chains())
}

func TestCLN2_ENITablesAreAskedFor(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("ip rule add pref 20 to 10.0.0.9 lookup main proto kernel && ip rule add pref 111 from 10.0.0.9 lookup 11 proto kernel && ip rule add pref 111 from 10.0.0.8 lookup 12 proto kernel && ip rule add pref 1 fwmark 0xd00/0xf00 lookup 200 proto kernel")
	rules := func() string { return n.shell("ip rule | grep -E ' lookup (11|12|200)|10.0.0.9' | cut -d: -f1") }
	require.Equal(t, "1\n20\n111\n111", rules())
	o := n.run("cleanup", "--all-state", "-f")
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, "20\n111\n111", rules())
	for _, args := range [][]string{{"--bpf-state", "--eni-tables=11"}, {"--all-state", "--eni-tables=254"}, {"--all-state", "--eni-tables=0"}, {"--all-state", "--eni-tables=4294967296"}, {"--all-state", "--eni-tables=-1"}} {
		o = n.run(append([]string{"cleanup", "-f"}, args...)...)
		require.Equal(t, 64, o.code, "%v: %s", args, o.stderr)
	}
	o = n.run("cleanup", "--all-state", "-f", "--eni-tables=10,11")
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, "111", rules(), "that of table 12")
}

// What the flags would add to Cilium's state is found without them, too, and listed as left with
// the flag that removes it; what was asked for is not.
func TestCLN12_WhatWasNotAskedForIsListedAsLeftWithTheFlagThatRemovesIt(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("ip rule add pref 20 to 10.0.0.9 lookup main proto kernel; ip rule add pref 111 from 10.0.0.9 lookup 11 proto kernel; ip rule add pref 111 from 10.0.0.8 lookup 12 proto kernel; " +
		"ip rule add pref 1536 from 10.0.0.7 lookup 3; ip rule add pref 9 lookup 2004; ip link add eth7 type veth peer name eth8; ip link set eth7 up; ip link set eth8 up; " +
		"ip route add 10.9.0.2 dev eth7 scope link table 11 proto kernel; ip netns add cilium-health; ip netns add cni-12345678; " +
		"ip xfrm policy add src 0.0.0.0/0 dst 10.3.0.0/24 dir out mark 0xd00 mask 0xf00 tmpl src 10.0.0.1 dst 10.0.0.2 proto esp reqid 1 mode tunnel; " +
		"ip xfrm state allocspi src 10.0.0.1 dst 10.0.0.2 proto esp reqid 1 mode tunnel mark 0xd00 mask 0xf00 min 3 max 3")
	left := func(args ...string) (lines []string) {
		o := n.run(append([]string{"cleanup", "--all-state"}, args...)...)
		require.Zero(t, o.code, o.stderr)
		_, list, _ := strings.Cut(o.stdout, "left as it is (")
		for line := range strings.Lines(list) {
			if strings.Contains(line, "not asked for") {
				lines = append(lines, regexp.MustCompile(` index \d+`).ReplaceAllString(strings.TrimSpace(line), ""))
			}
		}
		return lines
	}
	netns := "network namespace cilium-health  (not asked for: --netns removes it)"
	eni := func(tables string) string { return "  (not asked for: --eni-tables " + tables + " removes it)" }
	xfrm := []string{"xfrm policy out from 0.0.0.0/0 to 10.3.0.0/24  (not asked for: --xfrm removes it)", "xfrm state from 10.0.0.1 to 10.0.0.2 proto esp spi 0x3  (not asked for: --xfrm removes it)"}
	all := append([]string{
		"ip rule IPv4 20: to 10.0.0.9/32 lookup 254" + eni("11,12"), "ip rule IPv4 111: from 10.0.0.8/32 lookup 12" + eni("11,12"), "ip rule IPv4 111: from 10.0.0.9/32 lookup 11" + eni("11,12"),
		"route 10.9.0.2/32 dev eth7 table 11" + eni("11,12"), netns,
	}, xfrm...)
	require.ElementsMatch(t, all, left("--dry-run"))
	require.ElementsMatch(t, all, left("-f"))
	require.Contains(t, n.shell("ip netns; ip rule; ip xfrm policy"), "cilium-health", "they are left")
	require.Empty(t, left("--dry-run", "--netns", "--xfrm", "--eni-tables", "11,12"))
	require.ElementsMatch(t, append(xfrm, "ip rule IPv4 111: from 10.0.0.8/32 lookup 12"+eni("12"), netns), left("-f", "--eni-tables", "11"))

	o := n.run("cleanup", "--bpf-state", "-f")
	require.Zero(t, o.code, o.stderr)
	require.NotContains(t, o.stdout, "not asked for", "the flags go with --all-state")
}

// Another agent's state is removed, and Cilium's is ignored.
func TestCLN2_OwnershipFromAFile(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -p /run/cilium && touch /run/cilium/x")
	before := n.state()
	n.shell("mkdir -p /var/lib/acme && ip link add acme0 type veth peer name eth7")
	for content, want := range map[string]string{
		"stateDirs: [/var/lib]\n":         "which is the node's",
		"linsk: []\npins: 7\n":            "line 1: field linsk not found in type cleanup.Ownership; line 2: cannot unmarshal",
		"":                                "it owns nothing",
		strings.Repeat("#", 1<<20) + "\n": "larger than 1048576 bytes",
		"pins: [a]\n---\npins: [b]\n":     "line 3 starts a second document",
	} {
		n.write("/run/acme.yaml", content)
		o := n.run("cleanup", "--ownership", "/run/acme.yaml", "--all-state", "-f")
		require.NotZero(t, o.code)
		require.Contains(t, o.stderr, want)
	}
	for _, args := range [][]string{{"--ownership", ""}, {"--ownership", "/run/acme.yaml", "--netns"}, {"--ownership", "/run/acme.yaml", "--aws-leftovers"}} {
		require.Equal(t, 64, n.run(append(args, "cleanup", "--all-state", "-f")...).code, args)
	}
	n.write("/run/acme.yaml", "---\n---\nagent: acme\nlinks: [{name: 'acme[0-9]'}]\nstateDirs: [/var/lib/acme]\n---\n")
	o := n.runEnv([]string{"CILIUM_ALL_STATE=true"}, "cleanup", "--ownership", "/run/acme.yaml", "-f")
	require.Contains(t, o.stderr, "nothing selected", "the variable speaks of Cilium")
	o = n.run("cleanup", "--ownership", "/run/acme.yaml", "--all-state", "--dry-run")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, "acme0")
	o = n.run("cleanup", "--ownership", "/run/acme.yaml", "--all-state", "-f")
	require.Zero(t, o.code, o.stderr)
	n.shell("rm /run/acme.yaml")
	require.Empty(t, before.Diff(n.state()))
}

// A mistake in a flag or a file once removed these, and an exception still can.
func TestSEC9_NoFlagTakesWhatIsTheNodes(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -p /etc/cni/net.d /etc/kubernetes && touch /etc/cni/net.d/10-calico.conflist /etc/kubernetes/kubelet.conf && iptables -N KUBE-SERVICES")
	before := n.state()
	n.write("/run/files.yaml", "agent: acme\nfiles: [/etc/passwd, /etc/kubernetes/kubelet.conf]\n")
	n.write("/run/chains.yaml", "agent: acme\nchainPrefixes: [KUBE-]\n")
	n.write("/run/good.yaml", "agent: acme\nlinks: [{name: 'acme[0-9]'}]\n")
	all := []string{"cleanup", "--all-state", "-f"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{append(all, "--ownership", "/run/files.yaml"), `files: "/etc/passwd" would match the path /etc/passwd*, which is the node's`},
		{append(all, "--ownership", "/run/chains.yaml"), `chainPrefixes: "KUBE-" would match the chain KUBE-*, which is kube-proxy's`},
		{append(all, "--sysctl-conf-dir=/etc", "--sysctl-config-file=passwd.conf"), `files: "/etc/passwd.conf": only names of the agent "cilium" are searched for there: `},
		{append(all, "--cni-conf-dir=/etc/ssh", "--cni-conf-name=sshd.conf"), `"/etc/ssh" would match the path /etc/ssh, which is the node's`},
		{append(all, "--exception=file:/etc/passwd"), `exceptions: "/etc/passwd" would match`},
		{append(all, "--exception=/etc/cni"), "want KIND:NAME"},
		{[]string{"uninstall-cni", "--write-cni-conf-when-ready=/etc/cni/net.d/10-calico.conflist"}, `"/etc/cni/net.d/10-calico.conflist" would match the CNI file 10-calico*, which is calico's`},
	} {
		o := n.run(c.args...)
		require.Equal(t, 64, o.code, "%v: %s", c.args, o.stderr)
		require.Contains(t, o.stderr, c.want, c.args)
	}
	n.shell("rm /run/files.yaml /run/chains.yaml")
	o := n.run(append(all, "--ownership", "/run/good.yaml", "--exception=file:/etc/cni/net.d/10-calico.conflist", "--exception=chain:KUBE-SERVICES")...)
	require.Zero(t, o.code, o.stderr)
	n.shell("rm /run/good.yaml; test ! -e /etc/cni/net.d/10-calico.conflist; ! iptables -S KUBE-SERVICES; touch /etc/cni/net.d/10-calico.conflist; iptables -N KUBE-SERVICES")
	require.Empty(t, before.Diff(n.state()))
}

func TestCLN2_PlacesOfANodeAreThoseOfTheFlags(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -p /opt/conf /opt/plugins /run/bpf && touch /opt/conf/05-cilium.conflist /opt/conf/07-mine.conflist /opt/conf/10-other.conf.mybak /opt/plugins/cilium-cni /opt/plugins/bridge && mount -n -t bpf bpf /run/bpf && mkdir -p /run/bpf/cilium/x /etc/cni/net.d && touch /etc/cni/net.d/05-cilium.conflist")
	args := []string{"cleanup", "--all-state", "-f", "--cni-conf-dir", "/opt/conf", "--cni-conf-name", "07-mine.conflist",
		"--cni-backup-suffix", ".mybak", "--cni-bin-dir", "/opt/plugins", "--bpf-fallback", "/run/bpf"}
	o := n.run(append(args, "--custom-cni-conf")...)
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, "05-cilium.conflist\n07-mine.conflist\n10-other.conf.mybak", n.shell("ls /opt/conf"), "they have another owner")
	require.Equal(t, "bridge", n.shell("ls /opt/plugins"))
	require.Empty(t, n.shell("ls /run/bpf | grep cilium || true"))

	o = n.run(args...)
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, "10-other.conf", n.shell("ls /opt/conf"))
	require.Equal(t, "05-cilium.conflist", n.shell("ls /etc/cni/net.d"))
	require.NotEmpty(t, n.shell("grep /run/bpf /proc/self/mountinfo"), "its owner is unknown")
}

// If another program keeps making what cleanup removes, cleanup fails.
func TestCLN1_CleanupLooksOnceMore(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -p /run/cilium/many /etc/cni/net.d && cd /run/cilium/many && seq 5000 | xargs touch && ip link add cilium_host type veth peer name cilium_net")
	again := n.Command("sh", "-c", "while [ -e /sys/class/net/cilium_host ]; do :; done; mkdir -p /var/lib/cilium; : > /var/lib/cilium/again; echo made")
	out, err := again.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, again.Start())
	o := n.run("cleanup", "--all-state", "-f")
	_, err = out.Read(make([]byte, 5))
	require.NoError(t, err)
	require.NoError(t, again.Wait())
	require.Equal(t, 1, o.code, o.stdout)
	require.Contains(t, o.stderr, "/var/lib/cilium")
	require.Zero(t, n.run("cleanup", "--all-state", "-f").code)
}

// A path that an operator names may belong to the node.
func TestCLN6_TheNodesOwnMountsAndFilesStay(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -p /run/adm && mount -n -t bpf bpf /run/adm")
	before := n.state()
	env := []string{"CGROUP_ROOT=/sys/fs/cgroup", "CILIUM_ALL_STATE=true", "SLIPWAY_BPF_ROOT=/run/adm"}
	o := n.runEnv(env, "cleanup", "-f")
	require.Zero(t, o.code, o.stderr)
	require.Empty(t, before.Diff(n.state()))
	o = n.runEnv(env, "cleanup", "-f", "--cni-conf-name", "../../hostname")
	require.Equal(t, 64, o.code)
	require.Empty(t, before.Diff(n.state()))

	n.shell("mkdir -p /run/cilium && touch /run/cilium/old")
	before = n.state()
	o = n.runEnv(env, "cleanup", "-f", "--all-state=false")
	require.Zero(t, o.code, "a flag wins over the environment")
	require.Empty(t, before.Diff(n.state()))
	require.Equal(t, 64, n.run("cleanup", "--bpf-state", "--netns").code)
}

// Between apply's cleanup and the agent's own configuration, no other CNI's configuration may
// be restored.
func TestCLN8_CleanupWithinApplyBringsNoOtherCNIBack(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -p /etc/cni/net.d && touch /etc/cni/net.d/05-cilium.conflist /etc/cni/net.d/100-crio-bridge.conflist.cilium_bak")
	o := n.runEnv([]string{"CILIUM_ALL_STATE=true"}, "apply", "--plugins", n.plugins)
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, "100-crio-bridge.conflist.cilium_bak", n.shell("ls /etc/cni/net.d"))
	o = n.run("cleanup", "--all-state", "-f")
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, "100-crio-bridge.conflist", n.shell("ls /etc/cni/net.d"))
}

// Files in the agent's folders that the plan needs survive.
func TestCLN8_CleanupWithinApplySparesTheConfigurationAndTheRecord(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -p /var/lib/cilium /run/cilium && touch /var/lib/cilium/old /run/cilium/old")
	args := []string{
		"apply", "--source", "file:" + n.source, "--dest", "/var/run/cilium/config-map", "--state-dir", "/var/lib/cilium/slipway",
		"--plugins", n.plugins, "--cni-conf", n.conf, "--output", "json",
	}
	require.Zero(t, n.run(args...).code)
	for _, want := range []string{"changed", "unchanged"} {
		o := n.runEnv([]string{"CILIUM_ALL_STATE=true"}, args...)
		require.Zero(t, o.code, o.stderr)
		require.Equal(t, want, o.report(t).statuses()["cleanup"], o.stdout)
		require.Equal(t, "test", n.read("/run/cilium/config-map/cluster-name"))
		require.Equal(t, "gone", n.shell("test -e /var/lib/cilium/old || test -e /run/cilium/old && echo there || echo gone"))
	}
	// A folder may be named from here; the mount's flag is empty, which means its default.
	args[0], args[4] = "check", "config-map"
	o := n.runEnv([]string{"CILIUM_ALL_STATE=true"}, append(args, "--cgroup-root=")...)
	require.Equal(t, "would-change", o.report(t).statuses()["cleanup"], o.stdout)
	o = n.run("uninstall", "--state-dir", "/var/lib/cilium/slipway")
	require.Zero(t, o.code, o.stderr)
	require.Empty(t, n.shell("ls -A /var/lib/cilium; ls -A /run/cilium 2>/dev/null || true"))
}

func TestCleanupShowsThenRemovesExactlyThat(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -p /run/cilium && touch /run/cilium/old && ip link add cilium_host type veth peer name cilium_net && ip link add lxcbr0 type bridge")
	before := n.state()
	first, second := n.run("cleanup", "--all-state", "--dry-run"), n.run("cleanup", "--all-state", "--dry-run")
	require.Zero(t, first.code, first.stderr)
	require.Equal(t, first.stdout, second.stdout)
	require.Contains(t, first.stdout, "cilium_host")
	require.NotContains(t, first.stdout, "lxcbr0")
	require.Empty(t, before.Diff(n.state()))

	o := n.run("cleanup", "--all-state")
	require.Equal(t, 1, o.code, "no terminal to ask on")
	require.Contains(t, o.stderr, "-f")
	require.Empty(t, before.Diff(n.state()))

	o = n.run("cleanup", "--all-state", "-f", "--output", "json")
	require.Zero(t, o.code, o.stderr)
	var inventory struct{ Count int }
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &inventory))
	require.Positive(t, inventory.Count)
	require.Equal(t, "lxcbr0", n.shell("ip -o link show | grep -oE 'lxcbr0|cilium_[a-z]+' | sort -u"))
	require.Equal(t, "gone", n.shell("test -e /run/cilium && echo there || echo gone"))
	require.Zero(t, n.run("cleanup", "--all-state", "-f").code, "nothing left is success")
}

// A module that the kernel does not have is named before anything is changed.
func TestHP2_AMissingModuleIsNamed(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	o := n.run(n.args("check", "--kernel-modules", "slipway_none")...)
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "step modules: check: kernel module slipway_none: ")
	o = n.run(n.args("apply", "--kernel-modules", "slipway_none", "--output", "json")...)
	require.Equal(t, 1, o.code)
	statuses := o.report(t).statuses()
	require.Equal(t, []string{"failed", "blocked", "not-run", "blocked"}, []string{statuses["modules"], statuses["sysctl"], statuses["bpffs"], statuses["cni"]})
	o = n.run(n.args("apply", "--kernel-modules", "slipway_none", "--skip", "modules", "--output", "json")...)
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, "skipped", o.report(t).statuses()["modules"])
	require.NotContains(t, n.run(n.args("check", "--output", "json")...).report(t).statuses(), "modules", "none were requested")

	o = n.run("check", "--only", "modules")
	require.Equal(t, 64, o.code)
	require.Contains(t, o.stderr, "--only modules, and --kernel-modules names none")
}

// None of the named steps is recorded: that does not mean all steps.
func TestPLAN12_UninstallOfNothingLeavesEverything(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	require.Zero(t, n.run(n.args("apply")...).code)
	for _, args := range [][]string{
		{"uninstall", "--only", "modules"},
		{"uninstall", "--skip", "config,cleanup,host-paths,cgroup,sysctl,bpffs,cni"},
		{"uninstall", "--dry-run", "--only", "modules"},
	} {
		o := n.run(args...)
		require.Zero(t, o.code, o.stderr)
		require.Contains(t, o.stdout, "no steps")
		require.Zero(t, n.run(n.args("check")...).code, "nothing is left to do")
	}
	require.Zero(t, n.run("uninstall").code)
	require.Equal(t, 2, n.run(n.args("check")...).code)
}

// An empty flag means its default, for mounting, keeping and cleaning up.
func TestEmptyRootsAreTheirDefaults(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	o := n.runEnv([]string{"CILIUM_ALL_STATE=true"}, n.args("apply", "--bpf-root=", "--cgroup-root=", "--output", "json")...)
	require.Zero(t, o.code, o.stderr)
	n.shell("mkdir /sys/fs/bpf/cilium")
	require.Contains(t, n.run("cleanup", "--all-state", "--dry-run", "--bpf-root=").stdout, "/sys/fs/bpf/cilium")
}

// An agent attaches its programs at the cgroup root in its configuration: a mount elsewhere is
// of no use to it.
func TestCgroupRootIsTheConfigurationsWhereAKeyIsNamed(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	apply := func(config string, args ...string) outcome {
		require.NoError(t, os.WriteFile(n.source, []byte(config), 0o644))
		return n.run(n.args("apply", append(args, "--cgroup-root-key=cgroup-root")...)...)
	}
	o := apply("cgroup-root: run/agent\n")
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stdout+o.stderr, `the value of cgroup-root is "run/agent", which is no absolute path`)
	require.NotContains(t, n.shell("cat /proc/self/mountinfo"), "cgroupv2")

	o = apply("debug: \"true\"\n", "--cgroup-root=/run/flag")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, "/run/flag")
	o = apply("cgroup-root: /run/agent\n", "--cgroup-root=/run/flag")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, n.shell("cat /proc/self/mountinfo"), " /run/agent ")
	require.Zero(t, n.run("uninstall").code)
	require.NotContains(t, n.shell("cat /proc/self/mountinfo"), "/run/agent")
}

func TestANodesAnnotationMovesNoMount(t *testing.T) {
	n := newNode(t)
	server := n.annotated(`{"config.cilium.io/cgroup-root":"/etc"}`)
	o := n.run("apply", "--dest", "/run/agent-config", "--only", "config,cgroup", "--cgroup-root-key", "cgroup-root",
		"--k8s-api-server-urls", server.URL, "--node-name", "node1", "--source", "file:"+n.source, "--source", "node")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stderr, "ignored: cgroup-root = /etc from node:node1")
	require.Equal(t, "/etc", n.read("/run/agent-config/cgroup-root"), "the agent hears it")
	require.Contains(t, n.shell("cat /proc/self/mountinfo"), " "+cgroupRoot+" ")
}
