// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// status is a part of status's JSON output.
type status struct {
	State, Error  string
	Agents        []agentStatus
	Records       []record
	Damaged, Left []string
	Orphans       []struct{ Agent, Kind, Object, Dir, Remove string }
}

type record struct {
	Kind, Object, ID, Kept string
	Begun                  bool
	Claims                 []struct{ Agent, Step string }
}

type agentStatus struct {
	Name, State, Owner, Alive, Error string
	Generation, Ended                int
	Since, Seen                      time.Time
	Todo                             []string
	LastRun                          *report
}

func (s status) agent(t *testing.T, name string) agentStatus {
	t.Helper()
	i := slices.IndexFunc(s.Agents, func(a agentStatus) bool { return a.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	return s.Agents[i]
}

// status runs the command, and requires that it neither changes nor locks anything.
func (n *node) status(code int, more ...string) (v status) {
	n.t.Helper()
	n.shell("rm -rf /run/slipway.lock && mkdir /run/slipway.lock") // a lock would fail
	before := n.wholeState()
	o := n.run(append([]string{"status", "--output", "json"}, more...)...)
	require.Equal(n.t, code, o.code, o.stdout+o.stderr)
	require.Empty(n.t, before.Diff(n.wholeState()))
	n.shell("rmdir /run/slipway.lock")
	require.NoError(n.t, json.Unmarshal([]byte(o.stdout), &v), o.stdout)
	return v
}

func TestPLAN20_StatusOfANodeThroughItsLife(t *testing.T) {
	n := newParallelNode(t)
	defer n.asItWas()()
	v := n.status(0)
	require.Equal(t, "ok", v.State)
	require.Empty(t, v.Agents)

	start := time.Now().Truncate(time.Second)
	n.okEnv([]string{"POD_UID=pod-1"}, n.args("apply")...)
	v = n.status(0)
	require.Len(t, v.Agents, 1)
	a := v.Agents[0]
	require.Equal(t, []any{"cilium", "ok", "pod-1", 1, 0}, []any{a.Name, a.State, a.Owner, a.Generation, a.Ended})
	require.NotEmpty(t, v.Records)
	require.Equal(t, []any{"apply", "pod-1", "", ""}, []any{a.LastRun.Command, a.LastRun.Owner, a.LastRun.Code, a.LastRun.Error})
	require.NotEmpty(t, a.LastRun.Version)
	require.WithinRange(t, a.LastRun.Start, start, time.Now())
	require.Equal(t, "ok", n.status(0, "--owner", "pod-1").State)
	require.Equal(t, "not-owner", n.status(3, "--owner", "pod-2").State)

	// The last run failed: first in its check, then while it changed something.
	n.exitsEnv(1, []string{"POD_UID=pod-1"}, n.args("apply", "--sysctl", "net.ipv4.none=1")...)
	run := n.status(1).Agents[0].LastRun
	require.Equal(t, []string{"failed", "sysctl.key-missing"}, []string{run.statuses()["sysctl"], run.Code})
	require.Contains(t, n.run("status").stdout, "Load the module")
	n.exits(3, "status", "--owner", "pod-2") // it belongs to another owner
	n.okEnv([]string{"POD_UID=pod-1"}, n.args("apply")...)

	// Another program has changed a file, which is kept.
	n.shell("echo changed >> " + dropIn)
	n.exits(1, "uninstall", "--owner", "pod-1")
	v = n.status(1)
	require.Equal(t, "uninstall", v.Agents[0].LastRun.Command)
	require.Equal(t, "ledger.changed", v.Agents[0].LastRun.Code)
	i := slices.IndexFunc(v.Records, func(r record) bool { return r.Kept != "" })
	require.Equal(t, dropIn, v.Records[i].Object)
	require.Contains(t, v.Agents[0].Todo[0], "nodeinit forget")
	n.ok("uninstall", "--owner", "pod-1", "--accept-kept")
	require.Empty(t, n.status(0).Agents)
	n.shell("rm -r /etc/sysctl.d; rm -rf /var/lib/slipway /run/slipway.lock")
}

// The first apply has failed, so that nothing else is recorded.
func TestPLAN20_StatusShowsAFirstApplyThatFailed(t *testing.T) {
	n := newParallelNode(t)
	before := n.wholeState()
	for code, args := range map[string][]string{
		"config.source-missing": {"--source", "file:/nowhere"},
		"sysctl.key-missing":    {"--sysctl", "net.ipv4.none=1"},
		"gate.timeout":          {"--wait-for-kube-proxy", "1ms"},
	} {
		n.exits(1, n.args("apply", append(args, "--owner", "pod-1")...)...)
		v := n.status(1)
		require.Len(t, v.Agents, 1)
		a := v.Agents[0]
		require.Empty(t, v.Records)
		require.Equal(t, []any{"failed", 0, code, "pod-1"}, []any{a.State, a.Generation, a.LastRun.Code, a.LastRun.Owner})
	}
	n.exits(1, "check", "--only", "sysctl", "--agent", "looks", "--sysctl", "net.ipv4.none=1")
	require.Len(t, n.status(1).Agents, 1, "a check leaves no report")
	require.Equal(t, []string{"new: file /var/lib/slipway", "new: file /var/lib/slipway/ledger", "new: file /var/lib/slipway/report.cilium"}, before.Diff(n.wholeState()))
	n.ok("uninstall")
	require.Empty(t, before.Diff(n.wholeState()))
}

// An interrupted run, and a state directory that is lost.
func TestPLAN20_StatusSaysWhatThereIsToDo(t *testing.T) {
	n := newParallelNode(t)
	n.ok("mount-bpffs", "/run/some/bpf")
	n.ok("mount-bpffs", "/run/some/bpf", "--agent", "sensor")
	n.strange("killed", true)
	v := n.status(2)
	require.Equal(t, "pending", v.State)
	require.Len(t, v.Agents, 3)
	killed := v.agent(t, "killed")
	require.Nil(t, killed.LastRun)
	require.Equal(t, []string{"a run was interrupted: apply again, or uninstall"}, killed.Todo)
	v = n.status(0, "--agent", "sensor")
	require.Len(t, v.Agents, 1)
	require.Len(t, v.Records, 1, "the directories are the other's")
	n.editLedger(func(line string) string {
		return strings.ReplaceAll(line, `"boot":"`+n.boot()+`"`, `"boot":"an earlier one"`)
	})
	a := n.status(2).agent(t, "sensor")
	require.Positive(t, a.Ended)
	require.Equal(t, []string{"the node was rebooted: apply again, or uninstall"}, a.Todo)

	n.shell("rm -r /var/lib/slipway")
	v = n.status(1)
	require.Empty(t, v.Agents)
	require.Equal(t, "/run/some/bpf", v.Orphans[0].Object)
	require.NotEmpty(t, v.Orphans[0].Remove)
	n.write("/var/lib/slipway", "a file\n")
	require.Contains(t, n.status(1).Error, "/var/lib/slipway")
	n.exits(64, "status", "--state-dir", "")
}

// Without the first line of the file nothing counts, and the command keeps the other lines.
func TestPLAN14_ADamagedHeadIsSalvaged(t *testing.T) {
	n := newParallelNode(t)
	n.shell("mkdir -p /etc/cni/net.d /etc/sysctl.d /opt/cni/bin " + cgroupRoot)
	defer n.asItWas()()
	n.ok(n.args("apply", "--owner", "pod-1", "--sysctl", "net.ipv4.ip_forward=1")...)
	n.shell("sed -i 1s/cilium/CILIUM/ /var/lib/slipway/ledger")
	for _, args := range [][]string{{"uninstall", "--any-owner"}, {"check"}, n.args("apply", "--owner", "pod-1")} {
		o := n.exits(1, args...)
		require.Contains(t, o.stderr, "its first line is damaged", args)
		require.Contains(t, o.stderr, "nodeinit forget --damaged: ", args)
	}
	v := n.status(1)
	require.Regexp(t, `its first line is damaged.* \(nodeinit forget --damaged\)`, v.Error)
	require.Equal(t, "apply pod-1", v.Agents[0].LastRun.Command+" "+v.Agents[0].LastRun.Owner, "reports are files of their own")
	require.Equal(t, "dropped the records that could not be read; the others stay\n", n.ok("forget", "--damaged").stdout)
	require.Empty(t, n.status(0).Damaged)
	n.ok("uninstall")
}

// The output for people: golden, at most 80 columns, with rounded ages.
func TestPLAN20_StatusForPeople(t *testing.T) {
	n := newParallelNode(t)
	text := n.ok("status").stdout
	n.ok("sysctlfix", "--owner", "pod-1")
	n.ok(append(forwarding("sensor", "0"), "--sysctl-conf-dir=")...)
	n.strange("killed", true)
	n.shell("echo changed >> " + dropIn)
	n.exits(1, "uninstall", "--owner", "pod-1")
	n.ok("mount-bpffs", "/run/bpf", "--agent", "lost", "--state-dir", "/run/lost")
	n.lastRun("sensor", -time.Hour, `"op":"apply","command":"sysctlfix","version":"v1.2.3","agent":"sensor","owner":"","results":[{"step":"sysctl","status":"unchanged","changes":[]}]`)
	n.lastRun("cilium", -3*time.Hour, `"op":"apply","version":"v1.2.3","agent":"cilium","owner":"pod-1","results":[
		{"step":"bpffs","status":"unchanged","changes":[]},
		{"step":"sysctl","status":"failed","changes":[],"code":"sysctl.read-only","error":"step sysctl: apply: write net.ipv4.conf.all.rp_filter = 0: read-only file system (the container runtime mounts /proc/sys read-only: run privileged)"}]`)
	text += n.run("status").stdout
	for line := range strings.Lines(text) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 80, line)
	}
	golden(t, "status.txt", text)
}

// lastRun replaces the report of an agent that has one by one of that age.
func (n *node) lastRun(agent string, ago time.Duration, fields string) {
	n.t.Helper()
	start := time.Now().Add(ago - time.Second).UTC().Format(time.RFC3339)
	n.write("/var/lib/slipway/report."+agent, `{"start":"`+start+`",`+fields+`}`)
	n.shell("chmod 600 /var/lib/slipway/report." + agent)
}

// A failure's code is in the report, in logs, in status, and in the end of the log that a pod's
// status shows, in either log format.
func TestPLAN18_TheCodeOfAFailureIsWhereOperatorsLook(t *testing.T) {
	n := newParallelNode(t)
	fails := n.args("apply", "--sysctl", "net.ipv4.none=1")
	const code = "sysctl.key-missing"
	o := n.exits(1, fails...)
	require.Regexp(t, `(?m)^nodeinit: step sysctl: .* \[sysctl\.key-missing\]\n\z`, o.stderr, "the kubelet's termination message ends with it")
	require.Equal(t, 1, strings.Count(o.stdout+o.stderr, "does not have the key"), "said once")
	require.Equal(t, code, n.status(1).Agents[0].LastRun.Code)
	require.Contains(t, n.run("status").stdout, "["+code+"]\n")

	o = n.run(append(fails, "--output", "json", "--log-format", "json")...)
	report := map[string]any{}
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &report))
	require.Equal(t, code, report["code"])
	for line := range strings.Lines(o.stderr) {
		var logged struct{ Level, Code, Msg string }
		require.NoError(t, json.Unmarshal([]byte(line), &logged), line)
		if logged.Level == "ERROR" {
			require.Equal(t, code, logged.Code, line)
		}
	}
	require.Contains(t, o.stderr, `"msg":"step sysctl: `, "the last line too")
	require.Equal(t, 1, strings.Count(o.stderr, "does not have the key"), "said once")
	require.NotContains(t, n.run("apply", "--only", "nothing").stderr, "[", "a usage error has none")
}

// The agent may run without it, but not all is well.
func TestPLAN18_AnOptionalStepThatFailedIsToBeLookedAt(t *testing.T) {
	n := newParallelNode(t)
	n.ok("mount-bpffs", "--owner", "pod-1")
	n.ok("status")
	n.shell(`sed -i 's/"step":"bpffs","status":"[a-z]*"/"step":"bpffs","status":"failed","excused":true,"error":"it is away"/' /var/lib/slipway/report.cilium`)
	require.Contains(t, strings.Join(strings.Fields(n.exits(2, "status").stdout), " "), "look at the optional step bpffs, which failed: it is away")
}
