// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const cgroupRoot = "/run/cilium/cgroupv2"

var removedBy = regexp.MustCompile(`(?m)remove it: (.*)$`)

// A node whose state directory is lost does not count as untouched.
func TestPLAN6_ALostStateDirectoryIsNoUninstalledNode(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	require.Zero(t, n.run(n.args("apply")...).code)
	applied := n.state()
	n.shell("mv /var/lib/slipway /var/lib/lost")
	for _, args := range [][]string{{"uninstall"}, {"uninstall"}, {"uninstall", "--dry-run"}, {"uninstall", "--any-owner", "--accept-kept", "--output", "json"}} {
		o := n.run(args...)
		require.Equal(t, 1, o.code, args)
		for _, object := range []string{cgroupRoot, "/sys/fs/bpf", dropIn} {
			require.Contains(t, o.stderr, "nothing is recorded in /var/lib/slipway, and "+object+" was made here: undo it with the --state-dir that it was made with, or if that is lost, remove it: ", args)
		}
	}
	n.shell("mv /var/lib/lost /var/lib/slipway")
	require.Empty(t, applied.Diff(n.state()))

	n.shell("mv /var/lib/slipway /var/lib/lost")
	for _, line := range removedBy.FindAllStringSubmatch(n.run("uninstall").stderr, -1) {
		n.shell(line[1])
	}
	o := n.run("uninstall")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, "nothing is recorded in /var/lib/slipway\n")
	require.Empty(t, o.stderr)
}

// The error names the directory that was probably meant: the usual one, or the one that the
// drop-in names.
func TestPLAN6_AMistypedStateDirectory(t *testing.T) {
	t.Parallel()
	for meant, typed := range map[string]string{"/var/lib/slipway": "/var/lib/slipwya", "/var/lib/cilium/slipway": "/var/lib/slipway"} {
		n := newNode(t)
		before := n.state()
		n.shell("mkdir -p /var/lib/cilium")
		require.Zero(t, n.run(n.args("apply", "--state-dir", meant)...).code)
		o := n.run("uninstall", "--state-dir", typed)
		require.Equal(t, 1, o.code)
		for _, object := range []string{cgroupRoot, "/sys/fs/bpf", dropIn} {
			require.Contains(t, o.stderr, "nothing is recorded in "+typed+", and "+object+" was made here: undo it by nodeinit uninstall --state-dir="+meant)
		}
		o = n.run("uninstall", "--state-dir", meant)
		require.Zero(t, o.code, o.stderr)
		require.NotContains(t, o.stdout, "nothing is recorded in")
		n.shell("rmdir /var/lib/cilium")
		require.Empty(t, before.Diff(n.state()))
	}
}

// Objects in another agent's journal, or left on purpose, are not orphans.
func TestPLAN6_WhatIsNoOrphan(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	acme := []string{"--agent", "acme", "--state-dir", "/var/lib/acme"}
	require.Zero(t, n.run(append([]string{"mount-bpffs"}, acme...)...).code)
	o := n.run("uninstall")
	require.Zero(t, o.code, o.stderr)
	require.Regexp(t, ` slipway-acme-[a-z0-9]{26}-[a-z0-9]{16} `, n.shell("grep ' /sys/fs/bpf ' /proc/self/mountinfo"))

	require.Zero(t, n.run("mount-cgroup").code)
	o = n.run("uninstall")
	require.Zero(t, o.code, "it had something to undo: %s", o.stderr)

	n.shell("mkdir -p " + cgroupRoot)
	require.Zero(t, n.run("mount-cgroup").code)
	require.Zero(t, n.run("journal", "forget", cgroupRoot).code)
	for range 2 {
		o = n.run("uninstall")
		require.Zero(t, o.code, o.stderr)
	}
	require.Contains(t, n.shell("cat /proc/self/mountinfo"), cgroupRoot)

	o = n.run("uninstall", "--agent", "acme")
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "nothing is recorded in /var/lib/slipway, and /sys/fs/bpf was made here: undo it with the --state-dir that it was made with")
	o = n.run("uninstall", "--agent", "acme", "--state-dir", "/var/lib/lost")
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "/sys/fs/bpf was made here")
	require.Zero(t, n.run(append([]string{"uninstall"}, acme...)...).code)
	require.Equal(t, 64, n.run("uninstall", "--agent", "Acme").code)
}

// Builds before the journal kept a record for each package.
func TestPLAN6_AnOlderBuildsStateIsRefused(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -m 700 /var/lib/slipway")
	n.write("/var/lib/slipway/bpffs.json", `{"schema": 1, "entries": [{"kind": "mount", "object": "/sys/fs/bpf"}]}`)
	for _, args := range [][]string{n.args("apply"), n.args("check"), {"uninstall"}, {"journal"}} {
		o := n.run(args...)
		require.Equal(t, 1, o.code, args)
		require.Contains(t, o.stderr, "/var/lib/slipway/bpffs.json was recorded by a build that kept no journal: uninstall with that build, or undo by hand the changes in the file, and remove it")
	}
	n.write("/var/lib/slipway/bpffs.json", `{"schema": 1}`) // another program's
	require.Zero(t, n.run("uninstall").code)
	require.Equal(t, "bpffs.json", strings.TrimSpace(n.shell("ls -A /var/lib/slipway")))
}
