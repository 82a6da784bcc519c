// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/snapshot"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/e2e/cluster"
)

// arrangements are the ways in which an agent's node is prepared.
var arrangements = []struct {
	name string
	make func(*testing.T) *deployment
}{
	{"init container", agent},
	{"entrypoint", entrypoint},
}

// unchanged is what the log says at the second start: the configuration is written
// into a directory that each pod has anew.
const unchanged = `config +changed .*\n( +make directory .*\n)? +write .*\n( +note: users other than root may change .*\n)?( +(host-paths|cgroup|sysctl|bpffs|cni) +unchanged .*\n){5} +skipped: cleanup .*\n7 steps: 5 unchanged, 1 changed, 1 skipped`

// A node's life with an agent, from NotReady until it is as it was before,
// looked at with the tools of others.
func TestLifeOfANode(t *testing.T) {
	begin(t)
	on(t, script(t, "foreign.sh"))
	on(t, "cd /var/lib/cni/networks && ls | grep -vx other | xargs rm -rf") // of tests before this one
	look(t)                                                                 // looking for rules makes the kernel's tables
	for i, a := range arrangements {
		if i > 0 && testing.Short() {
			break
		}
		t.Run(a.name, func(t *testing.T) {
			begin(t)
			life(t, a.make(t))
		})
	}
}

func life(t *testing.T, d *deployment) {
	nodeReady(t, "False")
	before := look(t)

	d.apply(t)
	first := d.ready(t)
	nodeReady(t, "True")
	pingEachOther(t)
	installed := look(t)
	require.NotEqual(t, before, installed)

	kubectl(t, "delete", "pod", first, "--namespace=kube-system")
	second := kubectl(t, "logs", d.ready(t), "--namespace=kube-system", "--container="+d.init["name"].(string))
	require.Regexp(t, unchanged, second)
	settles(t, installed, "the second start changes nothing")

	pingPods(t)
	d.remove(t)
	u := uninstaller(t)
	u.apply(t)
	require.Regexp(t, `(?s)\n +not-run: .*sysctl.*is kept: sandboxes need it for their deletion: 2, by /var/lib/cni/results`, u.says(t, 1), "pods still run")
	removePingPods(t)
	u.ready(t)
	u.remove(t)
	nodeReady(t, "False")
	// The runtime may release a pod's address once more when it forgets the pod, up to a
	// minute later: host-local makes its directory and the lock anew for that.
	settles(t, before, "the node is as it was before", "var/lib/cni/networks/e2e")
	require.Empty(t, on(t, "ls -A /var/lib/cni/networks/e2e 2>/dev/null | grep -vx lock || true"))
}

// pingEachOther starts two pods on the network and has one ping the other.
func pingEachOther(t *testing.T) {
	t.Helper()
	address := pingPods(t)
	require.True(t, strings.HasPrefix(address, "10.244.0."), address)
	require.Contains(t, kubectl(t, "exec", "one", "--", "ping", "-c", "3", "-i", "0.2", "-W", "2", address), " 0% packet loss")
	removePingPods(t)
}

// look returns the first node as other tools show it, one line per object.
func look(t *testing.T) snapshot.Snapshot {
	t.Helper()
	return lookAt(t, node.Node)
}

func lookAt(t *testing.T, n *cluster.Node) snapshot.Snapshot {
	t.Helper()
	s := snapshot.Snapshot{}
	s.Lines("node", onNode(t, n, script(t, "node.sh")))
	require.Greater(t, len(s), 500)
	return s
}

// prepared is a node without a network, before agents come.
func prepared(t *testing.T) snapshot.Snapshot {
	t.Helper()
	on(t, natTable)
	on(t, script(t, "foreign.sh"))
	look(t) // looking for rules makes the kernel's tables
	nodeReady(t, "False")
	return look(t)
}

// lockStays is the lock file that stays: running programs may hold it.
const lockStays = "new: node file: run/slipway.lock f 0600 0:0"

// settles waits until the first node is as it was, but for lines with one of the texts: links
// and mounts of a pod go a moment after it.
func settles(t *testing.T, want snapshot.Snapshot, what string, but ...string) {
	t.Helper()
	if differs := unsettled(t, node.Node, want, but...); len(differs) > 0 {
		t.Fatalf("%s, but:\n%s", what, strings.Join(differs, "\n"))
	}
}

// unsettled returns the differences that remain after ten seconds, one per line.
func unsettled(t *testing.T, n *cluster.Node, want snapshot.Snapshot, but ...string) (differs []string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		differs = slices.DeleteFunc(want.Diff(lookAt(t, n)), func(line string) bool {
			return line == lockStays || slices.ContainsFunc(but, func(text string) bool { return strings.Contains(line, text) })
		})
		if len(differs) == 0 || time.Now().After(deadline) {
			return differs
		}
	}
}
