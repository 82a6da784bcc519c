// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

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
		require.Regexp(n.t, `(?m)^ *`+result.Step+` +`+result.Status+` +\S+( ms)? +\S`, text.stdout, "%s", args)
	}
	require.Equal(n.t, steps, all, "%s", args)
	return r
}

// However early a run fails, its report has every step with its status and the reason.
func TestPLAN21_ARunThatFailsBeforeThereIsAPlanReportsItsSteps(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("ip link set lo up; mkdir -p /run/open; chmod 777 /run/open; touch /run/open/sock; printf 'cgroup: relative\n' > /run/relative; printf 'clean-cilium-state: \"true\"\n' > /run/clean")
	unreachable := []string{"--source", "config-map:kube-system/x", "--k8s-api-server-urls", "http://127.0.0.1:1", "--timeout", "300ms"}
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
		{allSteps, "config", "blocked", append(n.args("run", unreachable...), "--", "true"), true},
		{checked, "config", "blocked", n.args("check", unreachable...), false},
		{allSteps, "cni", "blocked", n.args("apply", "--plugins", "/run/none"), true},
		{allSteps, "cni", "blocked", n.args("apply", "--cni-conf", "/run/none"), true},
		{checked, "cni", "blocked", n.args("check", "--cni-conf", "", "--cni-conf-key", "none"), false},
		{allSteps, "", "not-run", n.args("apply", "--host-proc", "/run/none"), false},
		{allSteps, "", "not-run", n.args("apply", "--state-dir", "/run/open"), false},
		{checked, "", "not-run", n.args("check", "--state-dir", "/run/open"), false},
		{allSteps, "", "not-run", append(n.args("run"), "--", "/run/none"), false},
		{allSteps, "", "not-run", []string{"uninstall", "--state-dir", "/run/open"}, false},
		{allSteps, "", "not-run", []string{"uninstall", "--dry-run", "--host-proc", "/run/none"}, false},
		{allSteps, "cleanup", "blocked", []string{"apply", "--source", "file:/run/clean", "--runtime-endpoint", "/run/open/sock"}, true},
		{[]string{"cni"}, "", "not-run", []string{"uninstall-cni", "--state-dir", "/run/open"}, false},
		{[]string{"cni"}, "cni", "", []string{"install-cni", "--plugins", "/run/none"}, false},
		{[]string{"cgroup"}, "", "not-run", []string{"mount-cgroup", "--host-proc", "/run/none"}, false},
		{[]string{"config"}, "config", "", append([]string{"build-config"}, unreachable...), false},
	} {
		n.shell("rm -rf /var/lib/slipway")
		if c.args[0] == "run" { // its standard output is the command's
			o := n.run(c.args...)
			require.Equal(t, 1, o.code, o.stderr)
			for _, step := range c.steps {
				require.Regexp(t, `(?m)^  `+step+` +(failed|blocked|not-run|skipped) .*\S$`, o.stderr)
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

// A run that waits for the lock, or for a gate, or stops at a step, has a reason for each
// step that did not run.
func TestPLAN21_EachStepThatDidNotRunHasAReason(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	defer n.locked("/run/slipway.lock")()
	reason := func(r report, step string) (reason string) {
		require.Equal(t, "not-run", r.statuses()[step])
		for _, result := range r.Results {
			if result.Step == step {
				reason = result.Reason
			}
		}
		return reason
	}
	r := n.reportsAll(allSteps, n.args("apply", "--lock-timeout", "0")...)
	require.Equal(t, "the plan stopped before it", reason(r, "config"))
	r = n.reportsAll(append([]string{"kube-proxy"}, allSteps...), n.args("apply", "--wait-for-kube-proxy", "100ms")...)
	require.Equal(t, "the plan stopped before it", reason(r, "cgroup"))
	n.shell("mount -n -t tmpfs tmpfs /sys/fs/bpf")
	r = n.reportsAll(allSteps, n.args("apply")...)
	require.Equal(t, "the plan stopped before it", reason(r, "config"))
}

// A run that is given up, since something does not end by itself, shows its steps too.
func TestPLAN21_ARunThatIsGivenUpShowsItsSteps(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.dead("/run/dead")
	defer n.do(func() error { return unix.Unmount("/run/dead", unix.MNT_DETACH) })
	r := n.reportsAll(allSteps, "apply", "--source", "file:/run/dead/x", "--timeout", "100ms")
	require.Equal(t, "failed", r.statuses()["config"])
	require.Equal(t, "the run ended before it", r.Results[1].Reason)
}

// A report's file that cannot be written is found before the first change.
func TestPLAN17_AFileOfTheReportThatCannotBeWrittenIsFoundBeforehand(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir /run/ro; mount -n -t tmpfs -o ro,mode=755 tmpfs /run/ro")
	before := n.state()
	for file, says := range map[string]string{"/run/none/x.svg": "no such file or directory", "/run/ro/x.svg": "read-only file system"} {
		for _, command := range []string{"apply", "check"} {
			o := n.run(n.args(command, "--timeline", file)...)
			require.Equal(t, 1, o.code, o.stderr)
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

	o := n.run(n.args("check", "--report-metrics", "/run/none/slipway.prom")...)
	require.Equal(t, 2, o.code, o.stderr)
	require.Contains(t, o.stderr, "the result will not be reported")
	require.Contains(t, o.stderr, "--report-metrics: stat /run/none: no such file or directory")
}

// Check fails where an apply of the same process would, for want of a capability.
func TestPLAN17_CheckFailsWithoutTheCapabilityThatApplyNeeds(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -p /run/cilium/cgroupv2")
	for _, command := range []string{"check", "apply"} {
		var stdout, stderr bytes.Buffer
		cmd := n.Command("setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-all", "--", binary, command, "--only", "cgroup")
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		o := finish(t, cmd.Run, &stdout, &stderr)
		require.Equal(t, 1, o.code, "%s: %s", command, o.stdout)
		require.Contains(t, o.stderr, "CAP_SYS_ADMIN", command)
	}
}

// A wait that --timeout ends names what it waited for, and who has it.
func TestPLAN20_AFailedWaitNamesWhatItWaitedFor(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("iptables-legacy -t nat -N CILIUM_POST_nat")
	defer n.locked("/run/xtables.lock")()
	for _, args := range [][]string{{"cleanup", "--all-state", "-f"}, {"apply", "--only", "cleanup"}} {
		o := n.runEnv([]string{"CILIUM_ALL_STATE=true"}, append(args, "--timeout", "1500ms")...)
		require.Equal(t, 1, o.code, o.stdout)
		require.Contains(t, o.stderr, "chain CILIUM_POST_nat: ")
		require.Regexp(t, `context deadline exceeded: --timeout of 1\.5s is over \(it waits for /run/xtables\.lock`, o.stderr)
	}
	defer n.locked("/run/slipway.lock")()
	o := n.run("mount-bpffs", "/run/bpf", "--timeout", "300ms")
	require.Equal(t, 1, o.code, o.stdout)
	require.Contains(t, o.stderr, "take the node's lock: lock /run/slipway.lock: still held after ")
	require.Contains(t, o.stderr, "context deadline exceeded: --timeout of 300ms is over")
}
