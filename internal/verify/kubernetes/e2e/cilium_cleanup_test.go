// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build cilium

package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a real agent leaves on a node, and what of it is left by our cleanup and by the
// release's own, looked at with the tools of others. What the agent needs before it
// starts is no part of it: nodeinit made that, and takes it back each time.
func TestCleanupOfCilium(t *testing.T) {
	begin(t)
	release := namedCilium(t)
	release.importImage(t)
	prepareForCilium(t)
	theirs, err := release.Debug(t.Context(), os.Stderr)
	require.NoError(t, err)
	program, err := os.ReadFile(theirs)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(node.Root(), "run/e2e/cilium-dbg"), program, 0o755))
	for _, datapath := range []struct {
		name   string
		values []string
	}{{"default", nil}, {"kube-proxy replacement, native routing", nativeRouting}} {
		t.Run(datapath.name, func(t *testing.T) {
			begin(t)
			d := release.deployment(t, "cilium/one", datapath.values...)
			ours := d.leaves(t, "/run/nodeinit cleanup --all-state --force")
			own := d.leaves(t, "/run/e2e/cilium-dbg post-uninstall-cleanup -f")
			none := d.leaves(t, "true")
			t.Logf("what is left, by kind:\n%s", leftTable([]string{"no cleanup", "cilium-dbg", "nodeinit"}, none, own, ours))
			t.Logf("after nodeinit:\n%s\nafter cilium-dbg:\n%s", strings.Join(ours, "\n"), strings.Join(own, "\n"))
			require.NotEmpty(t, none)
			require.Empty(t, slices.DeleteFunc(slices.Clone(ours), unrecorded), "ours leaves only what there is no record of")
		})
	}
}

// leaves starts the agent, with pods, ends it, runs a cleanup, takes back what nodeinit
// had made, and returns what differs from before. The node is then put right.
func (d *deployment) leaves(t *testing.T, cleanup string) []string {
	t.Helper()
	nodeReady(t, "False")
	before := look(t)
	d.runs(t)
	removePingPods(t)
	noSandboxes(t)
	d.end(t)
	t.Log(on(t, cleanup+" 2>&1"))
	t.Log(on(t, "/run/nodeinit uninstall --any-owner --force 2>&1 || true")) // what was not cleaned is in its way
	left := unsettled(t, node.Node, before)
	t.Logf("%s: %d lines differ", cleanup, len(left))
	takeBack(t)
	nodeReady(t, "False")
	removeUnrecorded(t)
	settles(t, before, "the node is put right")
	return left
}

// unrecorded reports whether a line is of what removeUnrecorded takes away.
func unrecorded(line string) bool {
	return strings.Contains(line, ": run/cilium d ") || strings.Contains(line, "/fib_multipath_use_neigh ")
}

// noSandboxes waits until the runtime has forgotten the tests' pods, which are gone: it
// asks Cilium's plugin once more for each, up to a minute later, and without an agent that
// waits for half a minute and leaves the agent a note in /run/cilium.
func noSandboxes(t *testing.T) {
	t.Helper()
	const list = `ctr --namespace k8s.io containers list --quiet 'labels."io.kubernetes.pod.namespace"==default'`
	require.Eventually(t, func() bool { return on(t, list) == "" }, 3*time.Minute, 200*time.Millisecond)
}

// leftTable counts what is left after each cleanup, of each kind of object that the node
// is looked at for.
func leftTable(names []string, left ...[]string) string {
	counts := map[string][]int{}
	for i, lines := range left {
		for _, line := range lines {
			_, object, _ := strings.Cut(line, "node ")
			kind, _, _ := strings.Cut(object, ":")
			if counts[kind] == nil {
				counts[kind] = make([]int, len(left))
			}
			counts[kind][i]++
		}
	}
	table := "| | " + strings.Join(names, " | ") + " |\n|---|" + strings.Repeat("---|", len(names)) + "\n"
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		table += "| " + kind + " | " + strings.ReplaceAll(strings.Trim(fmt.Sprint(counts[kind]), "[]"), " ", " | ") + " |\n"
	}
	return table
}
