// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Whichever step could not do its work, apply finds it beforehand, names it by its code, and
// leaves the node as it is.
func TestPLAN17_WhateverStepCouldNotWorkNothingIsChanged(t *testing.T) {
	t.Parallel()
	const readOnly = "mkdir /run/ro; mount -n -t tmpfs -o ro,mode=755 tmpfs /run/ro"
	for name, c := range map[string]struct {
		node       string // a script
		step, code string
		args       []string
	}{
		"plugins' folder is read-only":            {"mkdir -p /opt/cni/bin; mount -n -t tmpfs -o ro,mode=755 tmpfs /opt/cni/bin", "cni", "cni.directory-unusable", nil},
		"plugins' folder allows no programs":      {"mkdir -p /opt/cni/bin; mount -n -t tmpfs -o noexec,mode=755 tmpfs /opt/cni/bin", "cni", "cni.directory-unusable", nil},
		"configurations' folder is read-only":     {"mkdir -p /etc/cni/net.d; mount -n -t tmpfs -o ro,mode=755 tmpfs /etc/cni/net.d", "cni", "cni.directory-unusable", nil},
		"drop-ins' folder is read-only":           {"mkdir -p /etc/sysctl.d; mount -n -t tmpfs -o ro,mode=755 tmpfs /etc/sysctl.d", "sysctl", "sysctl.directory-read-only", nil},
		"kernel values are read-only":             {"echo 1 > " + rpFilter + "; mount -n --bind /proc/sys /proc/sys; mount -n -o remount,bind,ro /proc/sys", "sysctl", "sysctl.read-only", []string{"--sysctl-conf-dir="}},
		"a key that there is not":                 {"", "sysctl", "sysctl.key-missing", []string{"--sysctl", "net.ipv4.none=1"}},
		"BPF's place is taken":                    {"mount -n -t tmpfs tmpfs /sys/fs/bpf", "bpffs", "bpffs.foreign", nil},
		"cgroup2's place is taken":                {"mkdir -p " + cgroupRoot + "; mount -n -t tmpfs tmpfs " + cgroupRoot, "cgroup", "cgroup.foreign", nil},
		"another cgroup's is there":               {"mkdir -p " + cgroupRoot + " /sys/fs/cgroup/pod; mount -n --bind /sys/fs/cgroup/pod " + cgroupRoot, "cgroup", "cgroup.not-root", nil},
		"a file in a directory's place":           {"touch /run/netns", "host-paths", "hostpath.wrong-type", nil},
		"the agent's folder is a file":            {"touch /run/cilium", "cgroup", "", nil},
		"the journal cannot be made":              {"mkdir -p /var/lib; mount -n -t tmpfs -o ro,mode=755 tmpfs /var/lib", "", "plan.read-only", nil},
		"the journal is not ours":                 {"mkdir -p /var/lib/slipway; chmod 777 /var/lib/slipway", "", "journal.untrusted", nil},
		"configuration in a foreign folder":       {"mkdir -p /run/agent-config; touch /run/agent-config/other", "config", "", nil},
		"the configuration's parent is read-only": {readOnly, "config", "plan.read-only", []string{"--dest", "/run/ro/config"}},
		"cgroup2's parent is read-only":           {readOnly, "cgroup", "plan.read-only", []string{"--cgroup-root", "/run/ro/cgroup"}},
		"BPF's parent is read-only":               {readOnly, "bpffs", "plan.read-only", []string{"--bpf-root", "/run/ro/bpf"}},
		"a module that there is not":              {"", "modules", "", []string{"--kernel-modules", "slipway_test"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.shell(c.node)
			before := n.state()
			o := n.run(n.args("apply", append(c.args, "--output", "json")...)...)
			require.Equal(t, 1, o.code, o.stdout+o.stderr)
			r := o.report(t)
			require.NotContains(t, o.stdout, `"changed"`)
			if c.step != "" {
				require.Equal(t, "failed", r.statuses()[c.step], o.stderr)
			}
			if c.code != "" {
				require.Equal(t, c.code, r.Code, o.stderr)
			}
			require.Empty(t, before.Diff(n.state()))
		})
	}
}
