// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/image"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/e2e/cluster"
)

// countingDir is the node's directory of counted plugins, and of the result of each call.
const countingDir = "/run/e2e/counting"

// counting replaces a plugin in an image, and has the node's plugin do the work. It names
// that plugin, since its own version is asked for under another name.
const counting = `#!/bin/sh
said=$(` + countingDir + `/PLUGIN)
status=$?
[ "$CNI_COMMAND" = VERSION ] || echo "$CNI_COMMAND $CNI_CONTAINERID $status" >> ` + countingDir + `/calls
[ -z "$said" ] || printf '%s\n' "$said"
exit $status
`

// counted are the plugins that connect pods, as an image has them.
func counted(t *testing.T) (files []image.File) {
	t.Helper()
	plugins, err := node.Plugins("/cni", "bridge", "ptp")
	require.NoError(t, err)
	for _, p := range plugins {
		files = append(files, image.File{Path: p.Path, Mode: 0o755, Content: []byte(strings.ReplaceAll(counting, "PLUGIN", filepath.Base(p.Path)))})
	}
	return files
}

// calls are the runtime's calls of plugins, for each sandbox that was connected.
type calls struct {
	adds, deletes int
	attached      map[string]bool // and not deleted
	gone          int
	failed        []string
}

func readCalls(t *testing.T) calls {
	t.Helper()
	c := calls{attached: map[string]bool{}}
	for line := range strings.Lines(on(t, "cat "+countingDir+"/calls")) {
		call := strings.Fields(line)
		require.Len(t, call, 3, line)
		command, sandbox := call[0], call[1]
		switch {
		case call[2] != "0":
			c.failed = append(c.failed, strings.TrimSpace(line))
		case command == "ADD":
			c.adds++
			c.attached[sandbox] = true
		case command == "DEL":
			c.deletes++
			if c.attached[sandbox] {
				c.gone++
			}
			delete(c.attached, sandbox)
		}
	}
	return c
}

// counter counts how often pods are connected and disconnected, and sees whether one
// could not be.
type counter struct {
	ready string // since when the node is
	log   int64  // where the runtime's log was
}

const runtimeLog = "var/log/e2e/containerd.log"

// prepareCounting has the node do the work of counted plugins.
func prepareCounting(t *testing.T) {
	t.Helper()
	plugins, err := node.Plugins(countingDir, "bridge", "ptp")
	require.NoError(t, err)
	on(t, "mkdir -p "+countingDir+"; : > "+countingDir+"/calls")
	for _, p := range plugins {
		require.NoError(t, os.WriteFile(filepath.Join(node.Root(), p.Path), p.Content, 0o755))
	}
}

// startCounting counts on a node that is ready.
func startCounting(t *testing.T) *counter {
	t.Helper()
	info, err := os.Stat(filepath.Join(node.Root(), runtimeLog))
	require.NoError(t, err)
	return &counter{ready: readySince(t), log: info.Size()}
}

// readySince returns the last time that the node became ready.
func readySince(t *testing.T) string {
	t.Helper()
	return kubectl(t, "get", "nodes", `--output=jsonpath={.items[*].status.conditions[?(@.type=="Ready")]['status','lastTransitionTime']}`)
}

// end checks that each pod was connected and, now that all are gone, disconnected; that no
// attempt failed; and that the node was ready all the time.
func (c *counter) end(t *testing.T) {
	t.Helper()
	require.Equal(t, c.ready, readySince(t), "the node was ready all the time")
	require.Eventually(t, func() bool { return len(readCalls(t).attached) == 0 }, 2*time.Minute, 100*time.Millisecond, "each is disconnected")
	n := readCalls(t)
	require.Empty(t, n.failed, "no call fails")
	require.Empty(t, c.refused(t), "nor fails what the runtime does before and after")
	require.Greater(t, n.gone, 2)
	t.Logf("%d sandboxes, %d ADD, %d DEL, none failed", n.gone, n.adds, n.deletes)
}

// refused are the sandboxes that the runtime could not make or stop.
func (c *counter) refused(t *testing.T) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(node.Root(), runtimeLog))
	require.NoError(t, err)
	require.Contains(t, string(text[c.log:]), "StopPodSandbox for", "the runtime's log says what it does")
	for line := range strings.Lines(string(text[c.log:])) {
		if strings.Contains(line, "PodSandbox for ") && strings.Contains(line, "level=error") {
			lines = append(lines, line)
		}
	}
	return lines
}

// startPods starts pods, two at a time, that each reach another one and end.
func startPods(t *testing.T, address string) {
	t.Helper()
	t.Cleanup(func() { deletePods(t) })
	applyObjects(t, object{
		"apiVersion": "batch/v1", "kind": "Job", "metadata": object{"name": "come-and-go"},
		"spec": object{
			"completions": 10000, "parallelism": 2, "backoffLimit": 0,
			"template": object{"spec": object{
				"automountServiceAccountToken": false, "restartPolicy": "Never",
				"containers": []any{object{"name": "ping", "image": cluster.Busybox, "command": []any{"ping", "-c", "2", "-i", "0.1", "-W", "10", address}}},
			}},
		},
	})
}

// morePods waits until some of the pods that start from now on are gone.
func morePods(t *testing.T) {
	t.Helper()
	before := readCalls(t).gone
	require.Eventually(t, func() bool { return readCalls(t).gone >= before+4 }, 3*time.Minute, 100*time.Millisecond, "pods come and go")
}

// endPods checks that each pod has reached the other one.
func endPods(t *testing.T) {
	t.Helper()
	require.Empty(t, kubectl(t, "get", "job", "come-and-go", "--output=jsonpath={.status.failed}"), "none has failed")
	deletePods(t)
}

func deletePods(t *testing.T) {
	t.Helper()
	kubectl(t, "delete", "job", "come-and-go", "--ignore-not-found", "--cascade=foreground", "--timeout=120s")
}
