// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whichever step could not do its work, apply and check find it beforehand, name it by its code,
// and leave the node as it is.
func TestPLAN17_WhateverStepCouldNotWorkNothingIsChanged(t *testing.T) {
	t.Parallel()
	const readOnly = "mkdir /run/ro; mount -n -t tmpfs -o ro,mode=755 tmpfs /run/ro"
	for name, c := range map[string]struct {
		node       string // a script
		step, code string
		args       []string
	}{
		"plugins' directory is read-only":         {"mkdir -p /opt/cni/bin; mount -n -t tmpfs -o ro,mode=755 tmpfs /opt/cni/bin", "cni", "cni.directory-unusable", nil},
		"plugins' directory allows no programs":   {"mkdir -p /opt/cni/bin; mount -n -t tmpfs -o noexec,mode=755 tmpfs /opt/cni/bin", "cni", "cni.directory-unusable", nil},
		"configurations' directory is read-only":  {"mkdir -p /etc/cni/net.d; mount -n -t tmpfs -o ro,mode=755 tmpfs /etc/cni/net.d", "cni", "cni.directory-unusable", nil},
		"drop-ins' directory is read-only":        {"mkdir -p /etc/sysctl.d; mount -n -t tmpfs -o ro,mode=755 tmpfs /etc/sysctl.d", "sysctl", "sysctl.directory-read-only", nil},
		"kernel values are read-only":             {"echo 1 > " + rpFilter + "; mount -n --bind /proc/sys /proc/sys; mount -n -o remount,bind,ro /proc/sys", "sysctl", "sysctl.read-only", []string{"--sysctl-conf-dir="}},
		"a key that there is not":                 {"", "sysctl", "sysctl.key-missing", []string{"--sysctl", "net.ipv4.none=1"}},
		"BPF's place is taken":                    {"mount -n -t tmpfs tmpfs /sys/fs/bpf", "bpffs", "bpffs.foreign", nil},
		"cgroup2's place is taken":                {"mkdir -p " + cgroupRoot + "; mount -n -t tmpfs tmpfs " + cgroupRoot, "cgroup", "cgroup.foreign", nil},
		"another cgroup's is there":               {"mkdir -p " + cgroupRoot + " /sys/fs/cgroup/pod; mount -n --bind /sys/fs/cgroup/pod " + cgroupRoot, "cgroup", "cgroup.not-root", nil},
		"a file in a directory's place":           {"touch /run/netns", "host-paths", "hostpath.wrong-type", nil},
		"the agent's directory is a file":         {"touch /run/cilium", "cgroup", "", nil},
		"the ledger cannot be made":               {"mkdir -p /var/lib; mount -n -t tmpfs -o ro,mode=755 tmpfs /var/lib", "", "plan.read-only", nil},
		"the ledger is not ours":                  {"mkdir -p /var/lib/slipway; chmod 777 /var/lib/slipway", "", "ledger.untrusted", nil},
		"configuration in a foreign directory":    {"mkdir -p /run/agent-config; touch /run/agent-config/other", "config", "", nil},
		"the configuration's parent is read-only": {readOnly, "config", "plan.read-only", []string{"--dest", "/run/ro/config"}},
		"cgroup2's parent is read-only":           {readOnly, "cgroup", "plan.read-only", []string{"--cgroup-root", "/run/ro/cgroup"}},
		"BPF's parent is read-only":               {readOnly, "bpffs", "plan.read-only", []string{"--bpf-root", "/run/ro/bpf"}},
		"the ledger's directory is read-only":     {"mkdir -p -m 0700 /var/lib/slipway; mount -n -t tmpfs -o ro,mode=0700 tmpfs /var/lib/slipway", "", "plan.read-only", nil},
		"a plugin that no step installs":          {`echo '{"cniVersion":"1.0.0","name":"x","plugins":[{"type":"none"}]}' > /run/x.conflist`, "cni", "cni.plugin-missing", []string{"--cni-conf", "/run/x.conflist"}},
		"a configuration that is none":            {"echo '{oops' > /run/bad.conflist", "cni", "cni.config-invalid", []string{"--cni-conf", "/run/bad.conflist"}},
		"a network that there is not":             {"", "cni", "cni.target-missing", []string{"--cni-conf=", "--cni-chain", "other"}},
		"a module that there is not":              {"", "modules", "", []string{"--kernel-modules", "slipway_test"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newParallelNode(t)
			n.shell(c.node)
			defer n.asItWas()()
			for _, command := range []string{"check", "apply"} {
				o := n.exits(1, n.args(command, append(c.args, "--output", "json")...)...)
				r := o.report(t)
				require.NotContains(t, o.stdout, `"changed"`)
				if c.step != "" {
					require.Equal(t, "failed", r.statuses()[c.step], o.stderr)
				}
				if c.code != "" {
					require.Equal(t, c.code, r.Code, o.stderr)
				}
			}
		})
	}
}

// reportsAll runs a command that fails, and requires of its reports in text and JSON that
// each step has a line with its status and a reason. It returns the JSON.
func (n *node) reportsAll(steps []string, args ...string) report {
	n.t.Helper()
	text, o := n.run(args...), n.run(slices.Insert(slices.Clone(args), 1, "--output=json")...)
	require.Equal(n.t, 1, text.code, "%s: %s", args, text.stdout)
	require.Equal(n.t, 1, o.code, "%s: %s", args, o.stdout)
	r := o.report(n.t)
	require.NotEmpty(n.t, r.Op)
	var all []string
	for _, result := range r.Results {
		all = append(all, result.Step)
		require.NotEmpty(n.t, result.Reason+result.Error+strings.Join(result.Changes, ""), "%s: %s has no reason", args, result.Step)
		reason := ` +\S+ +\S`
		switch result.Status {
		case "failed":
			require.Contains(n.t, text.stderr, "step "+result.Step+": ")
			reason = ` +\S+\n`
		case "skipped", "blocked", "not-run":
			require.Regexp(n.t, `(?m)^  `+result.Status+`: .*\b`+result.Step+`\b.* \(.`, text.stdout, "%s", args)
			continue
		}
		require.Regexp(n.t, `(?m)^  `+result.Step+` +`+result.Status+reason, text.stdout, "%s", args)
	}
	require.Equal(n.t, steps, all, "%s", args)
	return r
}

// However early a run fails, its report has every step with its status and the reason.
func TestPLAN21_ARunThatFailsBeforeThereIsAPlanReportsItsSteps(t *testing.T) {
	n := newParallelNode(t)
	n.shell("ip link set lo up; mkdir -p /run/open; chmod 777 /run/open; touch /run/open/sock; printf 'cgroup: relative\n' > /run/relative; printf 'clean-cilium-state: \"true\"\n' > /run/clean")
	unreachable := []string{"--source", "config-map:kube-system/x", "--k8s-api-server-urls", "http://127.0.0.1:1", "--timeout", "200ms"}
	checked := append([]string{"preflight"}, allSteps...)
	for _, c := range []struct {
		steps  []string
		failed string // a step; empty: it is none's failure
		rest   string // the status of those that have something to do
		args   []string
		isKept bool
	}{
		{allSteps, "config", "blocked", n.args("apply", unreachable...), true},
		{allSteps, "config", "blocked", n.args("apply", "--source", "config-map:kube-system/x", "--k8s-kubeconfig-path", "/run/none"), true},
		{allSteps, "config", "blocked", n.args("apply", "--source", "file:/run/relative", "--cgroup-root-key", "cgroup"), true},
		{checked, "config", "blocked", n.args("check", "--source", "file:/run/none"), false},
		{allSteps, "cni", "blocked", n.args("apply", "--plugins", "/run/none"), true},
		{checked, "cni", "blocked", n.args("check", "--cni-conf", "", "--cni-conf-key", "none"), false},
		{allSteps, "", "not-run", n.args("apply", "--host-proc", "/run/none"), false},
		{allSteps, "", "not-run", n.args("apply", "--state-dir", "/run/open"), false},
		{allSteps, "", "not-run", append(n.args("run"), "--", "/run/none"), false},
		{allSteps, "", "not-run", []string{"uninstall", "--state-dir", "/run/open"}, false},
		{allSteps, "", "not-run", []string{"uninstall", "--dry-run", "--host-proc", "/run/none"}, false},
		{allSteps, "cleanup", "blocked", []string{"apply", "--source", "file:/run/clean", "--runtime-endpoint", "/run/open/sock"}, true},
		{[]string{"cni"}, "", "not-run", []string{"uninstall-cni", "--state-dir", "/run/open"}, false},
		{[]string{"cni"}, "cni", "", []string{"install-cni", "--plugins", "/run/none"}, false},
		{[]string{"cgroup"}, "", "not-run", []string{"mount-cgroup", "--host-proc", "/run/none"}, false},
		{[]string{"config"}, "config", "", []string{"build-config", "--source", "file:/run/none"}, false},
	} {
		n.shell("rm -rf /var/lib/slipway")
		if c.args[0] == "run" { // its standard output is the command's
			o := n.exits(1, c.args...)
			for _, step := range c.steps {
				require.Regexp(t, `(?m)^  ((skipped|not-run): .*)?`+step+`\b.*\S$`, o.stderr)
			}
			continue
		}
		r := n.reportsAll(c.steps, c.args...)
		for _, result := range r.Results {
			switch want := c.rest; {
			case result.Step == c.failed:
				require.Equal(t, "failed", result.Status, "%s", c.args)
			case result.Status != "skipped":
				require.Equal(t, want, result.Status, "%s: %s", c.args, result.Step)
			}
		}
		if c.isKept {
			require.Contains(t, n.run("status").stdout, "step "+c.failed, "%s", c.args)
		}
	}
}

// A report's file that cannot be written is found before the first change.
func TestPLAN17_AFileOfTheReportThatCannotBeWrittenIsFoundBeforehand(t *testing.T) {
	n := newParallelNode(t)
	n.shell("mkdir /run/ro; mount -n -t tmpfs -o ro,mode=755 tmpfs /run/ro")
	before := n.state()
	for file, says := range map[string]string{"/run/none/x.svg": "no such file or directory", "/run/ro/x.svg": "read-only file system"} {
		for _, command := range []string{"apply", "check"} {
			o := n.exits(1, n.args(command, "--timeline", file)...)
			require.Contains(t, o.stderr, "--timeline: ")
			require.Contains(t, o.stderr, says)
			require.Equal(t, 1, strings.Count(o.stderr, "--timeline"), o.stderr)
		}
	}
	require.Empty(t, before.Diff(n.state()))
	r := n.reportsAll(allSteps, n.args("apply", "--timeline", "/run/none/x.svg")...)
	require.NotContains(t, slices.Collect(maps.Values(r.statuses())), "failed", "it is no step's failure")
	n.reportsAll(allSteps, n.args("apply", "--source", "file:/run/none/x", "--timeline", "/run/none/x.svg", "--report-metrics", "/run/x.prom")...)
	require.Contains(t, n.read("/run/x.prom"), `slipway_run_failed{agent="cilium",op="apply"`)

	o := n.exits(2, n.args("check", "--report-metrics", "/run/none/slipway.prom")...)
	require.Contains(t, o.stderr, "the result will not be reported")
	require.Contains(t, o.stderr, "--report-metrics: stat /run/none: no such file or directory")
}

// A wait that --timeout ends names what it waited for, and who has it.
func TestPLAN20_AFailedWaitNamesWhatItWaitedFor(t *testing.T) {
	n := newParallelNode(t)
	n.shell("iptables-legacy -t nat -N CILIUM_POST_nat")
	defer n.locked("/run/xtables.lock")()
	o := n.exitsEnv(1, []string{"CILIUM_ALL_STATE=true"}, "apply", "--only", "cleanup", "--timeout", "1500ms")
	require.Contains(t, o.stderr, "chain CILIUM_POST_nat: ")
	require.Regexp(t, `context deadline exceeded: --timeout of 1\.5s is over \(it waits for /run/xtables\.lock`, o.stderr)
	defer n.locked("/run/slipway.lock")()
	o = n.exits(1, "mount-bpffs", "/run/bpf", "--timeout", "300ms")
	require.Contains(t, o.stderr, "take the node's lock: lock /run/slipway.lock: still held after ")
	require.Contains(t, o.stderr, "context deadline exceeded: --timeout of 300ms is over")
}

const rpFilter = "/proc/sys/net/ipv4/conf/all/rp_filter"
