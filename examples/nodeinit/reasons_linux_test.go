// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// If nothing is done, or less than expected, the report gives the reason.
func TestPLAN4_WhatMayBeTakenForSuccessHasItsReason(t *testing.T) {
	n := newParallelNode(t)
	for _, step := range []string{"cni", "config", "modules", "preflight"} {
		require.Contains(t, n.ok("apply", "--only", step).stdout, ", so nothing was done (")
	}
	for _, command := range []string{"install-cni", "guard"} {
		require.Contains(t, n.exits(64, command, "--owner", "C").stderr, "nothing to install: give --plugins")
	}
	o := n.ok("apply", "--only", "cleanup")
	require.Regexp(t, `^  skipped: config, host-paths, cgroup, sysctl, bpffs, cni \(not in --only\)\n  skipped: cleanup \(neither the environment nor the configuration asks for it\)\n7 steps: 7 skipped, so nothing was done \(\S+\), without an owner\n$`, o.stdout)

	const unwritten = "note: no CNI configuration is written"
	for _, command := range [][]string{{"install-cni"}, {"apply", "--only", "cni"}} {
		args := append(command, "--plugins", n.plugins)
		for _, status := range []string{"changed", "unchanged"} {
			o = n.ok(args...)
			require.Regexp(t, `cni +`+status, o.stdout)
			require.Contains(t, o.stdout, unwritten+", so the container runtime calls these plugins only where another one names them: --cni-template")
		}
		n.ok("uninstall")
		o = n.ok(append(args, "--custom-cni-conf")...)
		require.NotContains(t, o.stdout, unwritten, "it was requested")
		o = n.ok(append(args, "--custom-cni-conf", "--cni-conf", n.conf)...)
		require.Contains(t, o.stdout, unwritten+": --custom-cni-conf leaves it to another program")
		o = n.ok(append(args, "--write-cni-conf-when-ready=/etc/cni/net.d/05-cilium.conflist", "--cni-conf", n.conf)...)
		require.Contains(t, o.stdout, unwritten+": --write-cni-conf-when-ready leaves it to the agent")
		n.ok("uninstall")
	}
	o = n.ok("apply", "--custom-cni-conf", "--cni-conf", n.conf)
	require.Contains(t, o.stdout, "skipped: cni (no CNI configuration is written: --custom-cni-conf")

	n.ok("uninstall", "--only", "bpffs")
	o = n.ok("uninstall", "--only", "bpffs", "--output", "json")
	require.Equal(t, "unchanged", o.report(t).Results[0].Status)
	require.Equal(t, "there is nothing to undo", o.report(t).Results[0].Reason)
	require.Contains(t, n.ok("uninstall").stdout, "  unchanged: cni, bpffs, cleanup, config (there is nothing to undo)\n")
}

// A refusal names the flags that avoid it.
func TestPLAN5_RefusalsNameTheFlagsThatHelp(t *testing.T) {
	n := newParallelNode(t)
	n.ok("mount-cgroup", "--owner", "a")
	n.ok("mount-cgroup", "--owner", "b")
	n.shell("mkdir -p /run/ours /sys/fs/cgroup/pod && mount -n -t tmpfs tmpfs /run/ours && mkdir /run/pod && mount -n --bind /sys/fs/cgroup/pod /run/pod")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"mount-cgroup", "--owner", "a"}, "nodeinit: --take-over: "},
		{[]string{"uninstall", "--owner", "a"}, "nodeinit: --any-owner: "},
		{[]string{"mount-bpffs", "/run/ours", "--agent", "x"}, "nodeinit: --bpf-fallback: "},
		{[]string{"mount-cgroup", "/run/ours", "--agent", "x"}, "nodeinit: --cgroup-root: "},
		{[]string{"mount-cgroup", "/run/pod", "--agent", "x"}, "nodeinit: --cgroup-repair: "},
		{[]string{"install-cni", "--cni-conf", n.conf, "--agent", "x"}, "nodeinit: --cni-wait: "},
		{[]string{"install-cni", "--plugins", n.plugins, "--cni-chain", "*", "--agent", "x"}, "nodeinit: --cni-wait: "},
	} {
		o := n.run(c.args...)
		require.Contains(t, []int{1, 3}, o.code, c.args)
		require.Contains(t, o.stderr, c.says, c.args)
	}
	n.ok("mount-cgroup", "/run/pod", "--agent", "x", "--cgroup-repair")
	require.Contains(t, n.ok("mount-bpffs", "/run/ours", "--agent", "x", "--bpf-fallback", "/run/bpf").stdout, "mount bpf on /run/bpf")
}

// A dry run's exit status shows whether there is anything to undo.
func TestPLAN4_ADryRunOfUninstallTellsByItsStatus(t *testing.T) {
	n := newParallelNode(t)
	for _, command := range []string{"uninstall", "uninstall-cni"} {
		n.ok(command, "--dry-run")
		n.ok("install-cni", "--plugins", n.plugins, "--cni-conf", n.conf)
		before := n.state()
		for _, output := range []string{"text", "json"} {
			o := n.exits(2, command, "--dry-run", "--output", output)
			require.NotContains(t, o.stderr, "nodeinit: ")
			require.Contains(t, o.stdout, "remove file /opt/cni/bin/test-cni")
		}
		require.Empty(t, before.Diff(n.state()))
		if command == "uninstall" {
			n.exits(2, command, "--dry-run", "--all-agents")
			n.ok(command, "--dry-run", "--only", "sysctl")
		}
		n.exits(1, command, "--dry-run", "--timeline", "/run/missing/x.svg") // an error counts more
		n.ok(command)
		n.ok(command, "--dry-run")
	}
	n.ok("uninstall", "--dry-run", "--all-agents")
}

// Unrecorded changes cannot be undone, and a warning is printed with them.
func TestPLAN6_WithoutAStateDirectoryItSaysThatNothingCanBeUndone(t *testing.T) {
	n := newParallelNode(t)
	const says = "nothing is recorded, so uninstall cannot undo it: --state-dir is empty"
	for _, args := range [][]string{
		{"check"}, {"apply"}, {"apply", "--output", "json"}, {"mount-bpffs", "/run/bpf"}, {"install-cni", "--plugins", n.plugins},
		{"run", "--only", "bpffs", "--", "true"},
	} {
		o := n.run(slices.Concat([]string{args[0], "--state-dir="}, args[1:])...)
		require.Contains(t, []int{0, 2}, o.code, o.stderr)
		require.Equal(t, 1, strings.Count(o.stderr, says), "%s: %s", args, o.stderr)
	}
	require.NotContains(t, n.ok("apply").stderr, says)
}

func TestWithoutRootItSaysSo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("this test is not run by root itself")
	}
	copied := filepath.Join(os.TempDir(), "nodeinit-unprivileged-"+filepath.Base(t.TempDir()))
	raw, err := os.ReadFile(binary)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(copied, raw, 0o755))
	t.Cleanup(func() { os.Remove(copied) })
	for _, command := range []string{"apply", "uninstall", "mount-cgroup", "mount-bpffs", "sysctlfix", "install-cni --cni-template none", "uninstall-cni", "demo"} {
		var stderr bytes.Buffer
		cmd := exec.Command(copied, strings.Fields(command)...)
		cmd.Dir, cmd.Stderr = "/", &stderr
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		err := cmd.Run()
		require.Error(t, err, command)
		require.Equal(t, 1, cmd.ProcessState.ExitCode(), command)
		require.Contains(t, stderr.String(), "needs root", command)
		require.Contains(t, stderr.String(), "sudo", command)
		require.Equal(t, 1, strings.Count(stderr.String(), "\n"), command)
	}
}
