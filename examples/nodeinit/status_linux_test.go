// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// status is a part of status's JSON output.
type status struct {
	State, Error string
	Agents       []agentStatus
	Orphans      []struct{ Agent, Kind, Object, Dir, Remove string }
}

type agentStatus struct {
	Agent, State, Owner, Error                  string
	Generation, Recorded, Ended, Adopted, Found int
	Begun, Kept                                 []struct{ Kind, Object, Step string }
	Todo                                        []string
	LastRun                                     *struct {
		Time                                  time.Time
		Command, Result, Version, Owner, Code string
		Step, Error, Cause, Remedy            string
	}
}

func (s status) agent(t *testing.T, name string) agentStatus {
	t.Helper()
	i := slices.IndexFunc(s.Agents, func(a agentStatus) bool { return a.Agent == name })
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
	require.Equal(t, "well", v.State)
	require.Empty(t, v.Agents)

	start := time.Now().Truncate(time.Second)
	n.okEnv([]string{"POD_UID=pod-1"}, n.args("apply")...)
	v = n.status(0)
	require.Len(t, v.Agents, 1)
	a := v.Agents[0]
	require.Equal(t, []any{"cilium", "well", "pod-1", 1, 0}, []any{a.Agent, a.State, a.Owner, a.Generation, a.Ended})
	require.Positive(t, a.Recorded)
	require.Equal(t, []any{"apply", "ok", "pod-1", "", ""}, []any{a.LastRun.Command, a.LastRun.Result, a.LastRun.Owner, a.LastRun.Code, a.LastRun.Error})
	require.NotEmpty(t, a.LastRun.Version)
	require.WithinRange(t, a.LastRun.Time, start, time.Now())
	require.Equal(t, "well", n.status(0, "--owner", "pod-1").State)
	require.Equal(t, "others", n.status(3, "--owner", "pod-2").State)

	// The last run failed: first in its check, then while it changed something.
	n.exitsEnv(1, []string{"POD_UID=pod-1"}, n.args("apply", "--sysctl", "net.ipv4.none=1")...)
	run := n.status(1).Agents[0].LastRun
	require.Equal(t, []string{"failed", "sysctl", "sysctl.key-missing", "The kernel does not have the key."}, []string{run.Result, run.Step, run.Code, run.Cause})
	require.Contains(t, run.Error, "net.ipv4.none")
	require.Contains(t, run.Remedy, "Load the module")
	n.exits(3, "status", "--owner", "pod-2") // it belongs to another owner
	n.okEnv([]string{"POD_UID=pod-1"}, n.args("apply")...)

	// Another program has changed a file, which is kept.
	n.shell("echo changed >> " + dropIn)
	n.exits(1, "uninstall", "--owner", "pod-1")
	v = n.status(1)
	require.Equal(t, "uninstall", v.Agents[0].LastRun.Command)
	require.Equal(t, "journal.changed", v.Agents[0].LastRun.Code)
	require.Equal(t, dropIn, v.Agents[0].Kept[0].Object)
	require.Contains(t, v.Agents[0].Todo[0], "journal forget")
	n.ok("uninstall", "--owner", "pod-1", "--accept-kept")
	require.Empty(t, n.status(0).Agents)
	n.shell("rm -r /etc/sysctl.d; rm -rf /var/lib/slipway /run/slipway.lock")
}

// The command of the last run is that of the command line.
func TestPLAN20_TheLastRunNamesItsCommand(t *testing.T) {
	n := newParallelNode(t)
	for _, command := range [][]string{{"mount-cgroup"}, {"run", "--only", "bpffs", "--", "true"}} {
		n.ok(command...)
		require.Equal(t, command[0], n.status(0).Agents[0].LastRun.Command)
		require.Contains(t, n.ok("status").stdout, "  last run  "+command[0]+" ok, ")
	}
	n.lastRun("cilium", time.Hour, `"op":"revert","results":[]`)
	require.Equal(t, "revert", n.status(0).Agents[0].LastRun.Command, "of a version that kept no command")
}

// The first apply has failed, so that nothing else is recorded.
func TestPLAN20_AFirstApplyThatFailsIsSeen(t *testing.T) {
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
		require.Equal(t, []any{"failed", 0, 0, "failed", code, "pod-1"}, []any{a.State, a.Recorded, a.Generation, a.LastRun.Result, a.LastRun.Code, a.LastRun.Owner})
		require.NotEmpty(t, a.LastRun.Step)
	}
	n.exits(1, "check", "--only", "sysctl", "--agent", "looks", "--sysctl", "net.ipv4.none=1")
	require.Len(t, n.status(1).Agents, 1, "a check leaves no report")
	require.Equal(t, []string{"new: file /var/lib/slipway", "new: file /var/lib/slipway/cilium.last.json"}, before.Diff(n.wholeState()))
	n.ok("uninstall")
	require.Empty(t, before.Diff(n.wholeState()))
}

// The next owner's apply is refused before it claims the node: it is the last run all the
// same, and that of a former owner is not.
func TestPLAN20_AnApplyOfTheNextOwnerThatFailsIsSeen(t *testing.T) {
	n := newParallelNode(t)
	n.ok(n.args("apply", "--owner", "pod-1")...)
	n.exits(1, n.args("apply", "--owner", "pod-2", "--sysctl", "net.ipv4.none=1")...)
	a := n.status(1).Agents[0]
	require.Equal(t, []any{"failed", "pod-1", "failed", "sysctl.key-missing", "pod-2"}, []any{a.State, a.Owner, a.LastRun.Result, a.LastRun.Code, a.LastRun.Owner})

	n.ok(n.args("apply", "--owner", "pod-2")...)
	n.exits(3, n.args("apply", "--owner", "pod-1", "--sysctl", "net.ipv4.none=1")...)
	a = n.status(0).Agents[0]
	require.Equal(t, []any{"ok", "pod-2"}, []any{a.LastRun.Result, a.LastRun.Owner})
}

// An interrupted run, a reboot, and a damaged journal.
func TestPLAN20_StatusSaysWhatThereIsToDo(t *testing.T) {
	n := newParallelNode(t)
	n.ok("mount-bpffs", "/run/some/bpf")
	n.ok("mount-bpffs", "/run/some/bpf", "--agent", "sensor")
	n.strange("killed")
	v := n.status(2)
	require.Equal(t, "todo", v.State)
	require.Len(t, v.Agents, 3)
	killed := v.agent(t, "killed")
	require.Equal(t, "the thing", killed.Begun[0].Object)
	require.Nil(t, killed.LastRun)
	require.Equal(t, []string{"a run was interrupted: apply again, or uninstall"}, killed.Todo)
	require.Len(t, n.status(0, "--agent", "sensor").Agents, 1)

	n.shell("rm /var/lib/slipway/killed.*; cp /var/lib/slipway/cilium.journal /run/cilium.journal; echo garbled >> /var/lib/slipway/cilium.journal")
	v = n.status(1)
	require.Contains(t, v.agent(t, "cilium").Error, "/var/lib/slipway/cilium.journal")
	require.Equal(t, "well", v.agent(t, "sensor").State, "it hides no other")
	require.Equal(t, 3, v.agent(t, "sensor").Recorded)
	require.Empty(t, v.Orphans, "the other agent has it recorded too")
	o := n.exits(1, "journal")
	require.Contains(t, o.stderr, "/var/lib/slipway/cilium.journal")
	require.Contains(t, o.stdout, "agent sensor: owner: none; 3 recorded")
	o = n.exits(1, "journal", "--output", "json")
	var view struct {
		Error  string
		Others []struct{ Agent string }
	}
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &view), o.stdout)
	require.Contains(t, view.Error, "cilium.journal")
	require.Equal(t, "sensor", view.Others[0].Agent)

	n.shell("rm -r /var/lib/slipway")
	v = n.status(2)
	require.Empty(t, v.Agents)
	require.Equal(t, "/run/some/bpf", v.Orphans[0].Object)
	require.NotEmpty(t, v.Orphans[0].Remove)
	n.write("/var/lib/slipway", "a file\n")
	require.Contains(t, n.status(1).Error, "/var/lib/slipway")
	n.exits(64, "status", "--state-dir", "")
}

// A damaged journal: what it may have recorded is listed, and what is advised works.
func TestPLAN20_ADamagedJournalCanBeMended(t *testing.T) {
	t.Parallel()
	const file = "/var/lib/slipway/cilium.journal"
	for damage, advice := range map[string]*regexp.Regexp{
		"8s/true/TRUE/":     regexp.MustCompile(`copy the directory, then cut the file after line (\d), which gives up the undo of what follows`),
		"1s/cilium/CILIUM/": regexp.MustCompile(`copy the directory, then move the file away, which gives up the undo`),
	} {
		n := newNode(t)
		n.shell("mkdir -p /etc/cni/net.d /etc/sysctl.d /opt/cni/bin " + cgroupRoot)
		before := n.state()
		n.ok(n.args("apply", "--owner", "pod-1", "--sysctl", "net.ipv4.ip_forward=1")...)
		n.shell("sed -i " + damage + " " + file)
		o := n.exits(1, "uninstall", "--any-owner")
		require.Regexp(t, "^nodeinit: "+file+": unreadable journal: record [18]: its length .*"+advice.String(), o.stderr)
		require.Contains(t, o.stderr, "nodeinit status lists the marked objects on the node")
		v := n.status(1)
		require.Regexp(t, advice, v.agent(t, "cilium").Error)
		require.Contains(t, v.agent(t, "cilium").Todo[0], "nodeinit apply --adopt")
		var objects []string
		for _, orphan := range v.Orphans {
			require.Equal(t, "cilium", orphan.Agent)
			objects = append(objects, orphan.Object)
		}
		require.ElementsMatch(t, []string{cgroupRoot, "/sys/fs/bpf", dropIn}, objects)
		require.Contains(t, strings.Join(strings.Fields(n.run("status").stdout), " "),
			"of agent cilium, whose journal is unreadable: its undo is lost unless that is repaired; remove it: umount /sys/fs/bpf")

		n.shell("cp -a /var/lib/slipway /run/copy; rm " + file)
		if line := advice.FindStringSubmatch(o.stderr); len(line) > 1 {
			n.shell("umask 077; head -n " + line[1] + " /run/copy/cilium.journal > " + file)
		}
		n.run("uninstall", "--any-owner") // of what precedes the damage
		for _, orphan := range n.status(2).Orphans {
			n.shell(orphan.Remove)
		}
		n.ok("uninstall", "--any-owner")
		n.ok(n.args("apply", "--adopt", "--owner", "pod-1")...)
		n.ok("uninstall", "--any-owner")
		require.Empty(t, n.status(0).Agents)
		left := strings.Join(before.Diff(n.state()), "\n")
		require.Contains(t, left, "changed: sysctl /proc/sys/net/ipv4/ip_forward: was 0, is 1", "its original is lost with the journal")
		for _, gone := range []string{"mount /", dropIn, "test-cni", "05-cilium.conflist", "slipway"} {
			require.NotContains(t, left, gone)
		}
	}
}

// The output for people: golden, at most 80 columns, with rounded ages.
func TestPLAN20_StatusForPeople(t *testing.T) {
	n := newParallelNode(t)
	text := n.ok("status").stdout
	n.ok("sysctlfix", "--owner", "pod-1")
	n.ok(append(forwarding("sensor", "0"), "--sysctl-conf-dir=")...)
	n.strange("killed")
	n.shell("echo changed >> " + dropIn)
	n.exits(1, "uninstall", "--owner", "pod-1")
	n.shell("mkdir -p /run/lost; mv /var/lib/slipway/sensor.* /run/lost")
	n.ok("mount-bpffs", "/run/bpf", "--agent", "lost", "--state-dir", "/run/lost")
	n.lastRun("cilium", -3*time.Hour, `"op":"apply","version":"v1.2.3","agent":"cilium","owner":"pod-1","results":[
		{"step":"bpffs","status":"unchanged","changes":[]},
		{"step":"sysctl","status":"failed","changes":[],"code":"sysctl.read-only","error":"step sysctl: apply: write net.ipv4.conf.all.rp_filter = 0: read-only file system (the container runtime mounts /proc/sys read-only: run privileged)"}]`)
	text += n.run("status").stdout
	for line := range strings.Lines(text) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 80, line)
	}
	golden(t, "status.txt", text)
}

// lastRun writes a report of that age to the journal.
func (n *node) lastRun(agent string, ago time.Duration, fields string) {
	n.t.Helper()
	start := time.Now().Add(ago - time.Second).UTC().Format(time.RFC3339)
	n.write("/var/lib/slipway/"+agent+".last.json", `{"start":"`+start+`",`+fields+`}`)
	n.shell("chmod 600 /var/lib/slipway/" + agent + ".last.json")
}

// A failure's code is in the report, in logs, in status, and in the end of the log that a pod's
// status shows, in either log format.
func TestPLAN18_TheCodeOfAFailureIsWhereOperatorsLook(t *testing.T) {
	n := newParallelNode(t)
	fails := n.args("apply", "--sysctl", "net.ipv4.none=1")
	const code = "sysctl.key-missing"
	o := n.exits(1, fails...)
	require.Regexp(t, `(?m)^nodeinit: step sysctl: .* \[sysctl\.key-missing\]\n\z`, o.stderr, "the kubelet's termination message ends with it")
	require.Equal(t, code, n.status(1).Agents[0].LastRun.Code)
	require.Contains(t, n.run("status").stdout, "  failed    step sysctl: "+code+"\n")

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
	require.NotContains(t, n.run("apply", "--only", "nothing").stderr, "[", "a usage error has none")
}

// Objects undone by a reboot, adopted, and wanted as found.
func TestPLAN20_StatusCountsWhatIsRecorded(t *testing.T) {
	n := newParallelNode(t)
	n.ok("apply", "--only", "sysctl", "--agent", "finds", "--sysctl-conf-dir=", "--sysctl", "net.ipv4.ip_forward=0")
	a := n.status(0).agent(t, "finds")
	require.Equal(t, []int{0, 1, 0, 0}, []int{a.Recorded, a.Found, a.Adopted, a.Ended})

	n.record("finds",
		journal.Entry{Kind: "acme/thing", Object: "adopted", After: journal.State{Type: "value"}, Adopted: true, Done: true},
		journal.Entry{Kind: "acme/thing", Object: "mounted", After: journal.State{Type: "value"}, Boot: "an earlier one", Done: true})
	a = n.status(2).agent(t, "finds")
	require.Equal(t, []int{2, 1, 1, 1}, []int{a.Recorded, a.Found, a.Adopted, a.Ended})
	require.Equal(t, []string{"the node was rebooted: apply again, or uninstall"}, a.Todo)
	require.Contains(t, n.run("status").stdout, "  journal   2 recorded, 1 as found, 1 adopted, 1 gone with a reboot\n")
}
