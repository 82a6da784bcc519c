// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// arrangements are the ways in which an agent's node is prepared.
var arrangements = []struct {
	name   string
	make   func(*testing.T) *deployment
	second string // what its log says at its second start
	undoes bool   // what it did, when it is deleted
}{
	// The configuration is written into a folder that each pod has anew.
	{"init container", agent, unchanged, false},
	{"entrypoint", entrypoint, unchanged, false},
	{"embedding agent", embedding, "the agent|level=INFO", true},
}

const unchanged = `config +changed .*\n +cleanup +skipped .*(\n +(host-paths|cgroup|sysctl|bpffs|cni) +unchanged .*){5}\n7 steps: 5 unchanged, 1 changed, 1 skipped`

// A node's life with an agent, from NotReady until it is as it was before,
// looked at with the tools of others.
func TestLifeOfANode(t *testing.T) {
	begin(t)
	on(t, "rm -rf /var/lib/cni/networks") // of tests before this one
	on(t, script(t, "foreign.sh"))
	snapshot(t) // looking for rules makes the kernel's tables
	for i, a := range arrangements {
		if i > 0 && testing.Short() {
			break
		}
		t.Run(a.name, func(t *testing.T) {
			begin(t)
			life(t, a.make(t), a.second, a.undoes)
		})
	}
}

func life(t *testing.T, d *deployment, wantSecond string, undoes bool) {
	nodeReady(t, "False")
	before := snapshot(t)

	d.apply(t)
	first := d.ready(t)
	nodeReady(t, "True")
	pingEachOther(t)
	installed := snapshot(t)
	require.NotEqual(t, before, installed)

	kubectl(t, "delete", "pod", first, "--namespace=kube-system")
	second := kubectl(t, "logs", d.ready(t), "--namespace=kube-system", "--container="+d.init["name"].(string))
	require.Regexp(t, wantSecond, second)
	settles(t, installed, "the second start changes nothing")

	d.remove(t)
	if undoes {
		nodeReady(t, "False")
		require.Equal(t, "", on(t, "ls -A /etc/cni/net.d | grep -v disabled$ || true; ls -d /var/lib/slipway 2>/dev/null || true"))
	}
	u := uninstaller(t)
	u.apply(t)
	u.ready(t)
	u.remove(t)
	nodeReady(t, "False")
	settles(t, before, "the node is as it was before")
}

// A test that fails in the middle leaves nothing to the next.
func TestANodeIsPutRight(t *testing.T) {
	if testing.Short() {
		return // half a minute
	}
	begin(t)
	on(t, "mkdir -p /var/lib/cni/networks; touch /run/xtables.lock; chmod 600 /run/xtables.lock; "+natTable)
	snapshot(t) // looking for rules makes the kernel's tables
	nodeReady(t, "False")
	before := snapshot(t)
	d := agent(t)
	d.apply(t)
	d.ready(t)
	nodeReady(t, "True")
	pingPods(t)

	putRight(t)
	nodeReady(t, "False")
	settles(t, before, "the node is as it was before")
}

// pingEachOther starts two pods on the network and has one ping the other.
func pingEachOther(t *testing.T) {
	t.Helper()
	address := pingPods(t)
	require.True(t, strings.HasPrefix(address, "10.244.0."), address)
	require.Contains(t, kubectl(t, "exec", "one", "--", "ping", "-c", "3", "-i", "0.2", "-W", "2", address), " 0% packet loss")
	removePingPods(t)
}

// snapshot is the node as other tools show it, a line for each object.
func snapshot(t *testing.T) map[string]bool {
	t.Helper()
	lines := map[string]bool{}
	for line := range strings.Lines(on(t, script(t, "node.sh"))) {
		lines[strings.TrimSpace(line)] = true
	}
	require.Greater(t, len(lines), 500)
	return lines
}

// settles waits until the node is as it was: links and mounts of a pod go a moment
// after it.
func settles(t *testing.T, want map[string]bool, what string) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		differs := difference(want, snapshot(t))
		if len(differs) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s, but:\n%s", what, strings.Join(differs, "\n"))
		}
	}
}

func difference(before, after map[string]bool) (lines []string) {
	for line := range before {
		if !after[line] {
			lines = append(lines, fmt.Sprintf("gone: %s", line))
		}
	}
	for line := range after {
		// Running programs may hold the lock, so it stays, as documented.
		if !before[line] && line != "file: run/slipway.lock f 0600 0:0" {
			lines = append(lines, fmt.Sprintf("new: %s", line))
		}
	}
	return lines
}
