// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

// binary is the program under test.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "fleet-test-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "fleet")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		panic(fmt.Errorf("build fleet: %w", err))
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// cluster is an API server that lists nodes in pages, like the real one
// (internal/verify/kubernetes/realkube).
type cluster struct {
	mu         sync.Mutex
	names      []string
	nodes      map[string]map[string]any
	pages      []int // nodes in each page
	denied     bool  // the list
	down       []string
	pods       []any // rows of the DaemonSet's table
	kubeconfig string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{nodes: map[string]map[string]any{}}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.kubeconfig = writeKubeconfig(t, server.URL)
	return c
}

func writeKubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"x","cluster":{"server":%q}}],"contexts":[{"name":"x","context":{"cluster":"x","user":""}}],"current-context":"x"}`, server)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// add adds a node with agents' reports, and with messages of conditions.
func (c *cluster) add(name string, reports map[string]string, conditions ...any) {
	annotations := map[string]string{}
	for agent, report := range reports {
		annotations["report.slipway.dev/"+agent] = report
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = append(c.names, name)
	c.nodes[name] = map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name, "annotations": annotations},
		"status": map[string]any{"conditions": append(conditions, map[string]any{"type": "Ready", "status": "True"})}}
}

// goesDown makes a node not ready.
func (c *cluster) goesDown(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = append(c.down, name)
	c.nodes[name]["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status."}}}
}

// runs adds a pod of the DaemonSet.
func (c *cluster) runs(node, uid string, since time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	made := time.Now().Add(-since).UTC().Format(time.RFC3339)
	c.pods = append(c.pods, map[string]any{"cells": []any{"agent-" + uid, node}, "object": map[string]any{"metadata": map[string]any{"uid": uid, "creationTimestamp": made}}})
}

// table answers as for kubectl, with rows of two columns.
func table(w http.ResponseWriter, column string, rows []any) {
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "meta.k8s.io/v1", "kind": "Table", "metadata": map[string]any{}, "rows": rows,
		"columnDefinitions": []any{map[string]any{"name": "Name"}, map[string]any{"name": column}},
	})
}

func (c *cluster) annotate(name, key, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[name]["metadata"].(map[string]any)["annotations"].(map[string]string)[key] = value
}

// deny makes lists be denied.
func (c *cluster) deny() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.denied = true
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if name, one := strings.CutPrefix(r.URL.Path, "/api/v1/nodes/"); one {
		if c.nodes[name] == nil {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404,"message":"nodes %q not found"}`, name)
			return
		}
		_ = json.NewEncoder(w).Encode(c.nodes[name])
		return
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	switch {
	case r.URL.Path == "/readyz":
		return
	case c.denied:
		w.WriteHeader(http.StatusForbidden)
		return
	case r.URL.Path == "/apis/apps/v1/namespaces/kube-system/daemonsets/agent":
		fmt.Fprint(w, `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"agent"},"spec":{"selector":{"matchLabels":{"app":"agent"}}}}`)
		return
	case strings.Contains(r.Header.Get("Accept"), "as=Table") && strings.HasSuffix(r.URL.Path, "/kube-system/pods") && r.URL.Query().Get("labelSelector") == "app=agent":
		table(w, "Node", c.pods)
		return
	case strings.Contains(r.Header.Get("Accept"), "as=Table") && r.URL.Query().Get("includeObject") == "None":
		rows := []any{}
		for i, name := range c.names {
			status := []string{"Ready", "Ready,SchedulingDisabled"}[i%2]
			if slices.Contains(c.down, name) {
				status = "NotReady"
			}
			rows = append(rows, map[string]any{"cells": []any{name, status}, "object": nil})
		}
		table(w, "Status", rows)
		return
	case !strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList") || limit == 0:
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	list := map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": map[string]any{}}
	to := min(from+limit, len(c.names))
	if to < len(c.names) {
		list["metadata"] = map[string]any{"continue": strconv.Itoa(to)}
	}
	items := []any{}
	for _, name := range c.names[from:to] {
		items = append(items, map[string]any{"metadata": c.nodes[name]["metadata"]})
	}
	list["items"], c.pages = items, append(c.pages, len(items))
	_ = json.NewEncoder(w).Encode(list)
}

type outcome struct {
	code           int
	stdout, stderr string
}

func (c *cluster) run(t *testing.T, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(binary, append([]string{"--kubeconfig", c.kubeconfig}, args...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		require.IsType(t, &exec.ExitError{}, err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// golden compares the output for people, at 80 columns, with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
	for line := range strings.Lines(got) {
		require.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), 80, line)
	}
}

func report(result, step, code, version string, since time.Duration) string {
	at := time.Now().Add(-since).UTC().Format(time.RFC3339)
	text, _ := json.Marshal(map[string]any{"agent": "cilium", "result": result, "step": step, "code": code, "version": version, "time": at, "since": at})
	return string(text)
}

const version = "v0.9.0 (commit 2f1c), go1.25.0 linux/amd64"

// forty is a cluster in which five nodes have failed, in three ways, and others are not ready.
func forty(t *testing.T) *cluster {
	c := newCluster(t)
	for i := range 40 {
		text := report("ready", "", "", version, 30*time.Hour)
		switch {
		case i < 3:
			text = report("failed", "sysctl", "sysctl.read-only", version, time.Duration(i+5)*time.Hour+30*time.Minute)
		case i == 3:
			text = report("failed", "cni", "cni.no-loopback", "v0.8.0", 25*time.Hour+30*time.Minute)
		case i == 4:
			text = report("failed", "config", "acme.own-code", version, 90*time.Minute)
		case i == 5:
			text = report("drifted", "bpffs", "", version, 80*time.Hour)
		case i == 6:
			text = "{\x1b[2J"
		}
		reports := map[string]string{"cilium": text}
		if i == 7 {
			reports = nil
		}
		c.add(fmt.Sprintf("worker-%02d", i), reports, map[string]any{"type": "SlipwayCiliumReady", "message": "write /proc/sys/net: read-only file \x1b[31msystem"})
	}
	return c
}

func TestRDY6_NodesAreGroupedByCode(t *testing.T) {
	c := forty(t)
	o := c.run(t)
	require.Equal(t, 2, o.code, o.stderr)
	golden(t, "fleet.txt", o.stdout)

	o = c.run(t, "--output", "json")
	require.Equal(t, 2, o.code, o.stderr)
	var f struct {
		Nodes   int
		Results map[string]int
		Groups  []struct {
			Code, Result, Cause string
			Nodes               []string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &f))
	require.Equal(t, map[string]int{"ready": 32, "failed": 5, "drifted": 1, "garbled": 1, "no report": 1}, f.Results)
	require.Equal(t, "sysctl.read-only", f.Groups[0].Code)
	require.Equal(t, []string{"worker-00", "worker-01", "worker-02"}, f.Groups[0].Nodes, "all of them")
	require.Equal(t, "/proc/sys is read-only here.", f.Groups[0].Cause)

	o = c.run(t, "--agent", "acme")
	require.Equal(t, 2, o.code)
	require.Contains(t, o.stdout, "40 nodes: 40 no report\n")
}

func TestRDY6_WhyANodeIsAsItIs(t *testing.T) {
	c := forty(t)
	o := c.run(t, "--why", "worker-03")
	require.Equal(t, 2, o.code, o.stderr)
	since := strings.Split(o.stdout, "\n")[5]
	require.Regexp(t, `^since    \S+Z \(25 hours\)$`, since)
	golden(t, "why.txt", strings.Replace(o.stdout, since, "since    ... (25 hours)", 1))

	o = c.run(t, "--why", "worker-39", "--output", "json")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, `"result": "ready"`)

	o = c.run(t, "--why", "worker-99")
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "fleet: get node worker-99: ")
	require.Empty(t, o.stdout)
}

// A report says how the node was left: it is not ready if its kubelet is not, nor if a newer pod
// has not reported.
func TestRDY6_ANodeIsReadyOnlyIfItsKubeletIsAndItsNewestPodHasReported(t *testing.T) {
	c := newCluster(t)
	owned := func(owner string, since time.Duration) map[string]string {
		return map[string]string{"cilium": strings.Replace(report("ready", "", "", version, since), "{", `{"owner":"`+owner+`",`, 1)}
	}
	c.add("down", owned("a", time.Hour))
	c.add("failed", map[string]string{"cilium": report("failed", "sysctl", "sysctl.read-only", version, time.Hour)})
	c.add("hangs", owned("c1", 30*time.Hour))
	c.add("no-owner", map[string]string{"cilium": report("ready", "", "", version, 30*time.Hour)})
	c.add("well", owned("d2", 30*time.Hour)) // the clock of the node is behind
	c.goesDown("down")
	c.goesDown("failed")
	for node, uid := range map[string]string{"down": "a", "failed": "b", "hangs": "c2", "no-owner": "e", "well": "d2"} {
		c.runs(node, uid, 90*time.Minute)
	}
	c.runs("hangs", "c1", 31*time.Hour)
	require.Contains(t, c.run(t).stdout, "5 nodes: 3 ready, 1 failed, 1 node not ready\n")
	o := c.run(t, "--daemonset", "kube-system/agent")
	require.Equal(t, 2, o.code, o.stderr)
	golden(t, "states.txt", o.stdout)
	require.Contains(t, c.run(t, "--why", "down").stdout, "message  Kubelet stopped posting node status.\n")
	require.Zero(t, c.run(t, "--why", "hangs").code)
	require.Contains(t, c.run(t, "--why", "hangs", "--daemonset", "kube-system/agent").stdout, "result   outdated\nsince ")
	require.Zero(t, c.run(t, "--why", "well", "--daemonset", "kube-system/agent").code)
	o = c.run(t, "--daemonset", "kube-system/none")
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "fleet: get daemonset kube-system/none: ")
}

// What helps is named by the command and flag that do it, which nodeinit has.
func TestRDY6_TheRemedyIsNodeinitsOwn(t *testing.T) {
	c := newCluster(t)
	for i, code := range []string{"ledger.not-owner", "bpffs.foreign", "ledger.unreadable", "ledger.changed", "cni.target-missing"} {
		c.add(fmt.Sprint("n", i), map[string]string{"cilium": report("failed", "bpffs", code, version, 0)})
	}
	o := c.run(t)
	require.Equal(t, 2, o.code, o.stderr)
	text := strings.Join(strings.Fields(o.stdout), " ")
	for _, want := range []string{
		"take the agent over explicitly. nodeinit apply --take-over does that, once the owner that nodeinit status shows has gone.",
		"nodeinit --bpf-root names another path", "nodeinit status on the node names them",
	} {
		require.Contains(t, text, want)
	}
	var help strings.Builder
	for _, name := range []string{"nodeinit.txt", "nodeinit-apply.txt", "nodeinit-uninstall.txt", "nodeinit-forget.txt"} {
		page, err := os.ReadFile(filepath.Join("..", "nodeinit", "testdata", name))
		require.NoError(t, err)
		help.Write(page)
	}
	flags := regexp.MustCompile(`--[a-z-]+`).FindAllString(text, -1)
	require.Subset(t, flags, []string{"--take-over", "--bpf-root", "--bpf-fallback", "--accept-kept", "--cni-wait"})
	for _, flag := range flags {
		require.Contains(t, help.String(), flag)
	}
	require.Contains(t, c.run(t, "--why", "n0").stdout, "--take-over")
}

// After an uninstall of all nodes, or where nothing may report.
func TestRDY6_AFleetWithoutReports(t *testing.T) {
	c := newCluster(t)
	for i := range 5 {
		c.add(fmt.Sprint("n", i), nil)
	}
	o := c.run(t)
	require.Equal(t, 2, o.code, o.stderr)
	golden(t, "silent.txt", o.stdout)
	o = c.run(t, "--agent", "acme", "--output", "json")
	require.Equal(t, 2, o.code, o.stderr)
	require.Contains(t, o.stdout, `"cause": "No node has a report: nothing reports, or all was uninstalled."`)
}

// Nodes have more metadata than their reports: 8 KiB is usual, and a few have far more.
func TestRDY6_NodesAreReadInSmallPages(t *testing.T) {
	c := newCluster(t)
	for i := range 1201 {
		size := 8 << 10
		if i%400 == 0 {
			size = 200 << 10
		}
		name := fmt.Sprintf("n%04d", i)
		c.add(name, map[string]string{"cilium": report("ready", "", "", version, 0)})
		c.annotate(name, "other", strings.Repeat("x", size))
	}
	o := c.run(t)
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, "1201 nodes: 1201 ready\n", o.stdout)
	c.mu.Lock()
	defer c.mu.Unlock()
	require.LessOrEqual(t, slices.Max(c.pages), 50)
}

// One node may fill its annotations and conditions with whatever the API server takes.
func TestRDY6_WhatANodeClaimsIsBounded(t *testing.T) {
	c := newCluster(t)
	hostile := strings.Repeat("\x1b[2J\u202e\n", 50)
	reports := map[string]string{"large": report("failed", "s", strings.Repeat("c", 50_000), "", 0)}
	for i := range 100 {
		reports[fmt.Sprint("agent", i)] = report("failed", hostile, fmt.Sprint(hostile, i), fmt.Sprint(hostile, i), 0)
	}
	reports["cilium"] = report("failed", "sysctl", "sysctl.read-only", version, 0)
	c.add("bad", reports, map[string]any{"type": "SlipwayLargeReady", "message": strings.Repeat(hostile, 80)})
	c.add("good", map[string]string{"cilium": report("failed", "sysctl", "sysctl.read-only", version, 0)})
	for _, args := range [][]string{{}, {"--output", "json"}, {"--why", "bad"}, {"--why", "bad", "--output", "json"}, {"--why", "bad", "--agent", "large", "--output", "json"}} {
		o := c.run(t, args...)
		require.Equal(t, 2, o.code, o.stderr)
		require.Less(t, len(o.stdout), 120_000, args)
		require.NotContains(t, o.stdout, "\x1b")
		require.NotContains(t, o.stdout, "\u202e")
		require.NotContains(t, o.stdout, strings.Repeat("c", 3000))
	}
	o := c.run(t)
	require.Contains(t, o.stdout, "reports of more than 16 agents")
	require.Less(t, len(o.stdout), 30_000)
	require.Contains(t, c.run(t, "--agent", "cilium").stdout, "2 nodes: sysctl.read-only, in step sysctl, agent cilium")
	require.Contains(t, c.run(t, "--why", "bad", "--agent", "large").stdout, "result   garbled")
}

// A kubelet may write as many annotations to its Node as the API server stores, in 256 KiB.
func TestRDY6_ANodeThatIsTooLargeIsNamed(t *testing.T) {
	c := newCluster(t)
	for i := range 120 {
		c.add(fmt.Sprintf("n%03d", i), map[string]string{"cilium": report("ready", "", "", version, 0)})
	}
	for _, name := range []string{"n000", "n070", "n119"} {
		for i := range 60_000 {
			c.annotate(name, fmt.Sprint(i), "")
		}
	}
	o := c.run(t)
	require.Equal(t, 2, o.code, o.stderr)
	require.Contains(t, o.stdout, "120 nodes: 117 ready, 3 garbled\n")
	require.Contains(t, o.stdout, "more metadata than is read")
	require.Contains(t, o.stdout, "n000, n070, n119\n")
	o = c.run(t, "--why", "n070")
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "get node n070: ")
}

// One that is not set hides no other.
func TestRDY6_ANodeCannotHideSinceWhenOthersFail(t *testing.T) {
	c := newCluster(t)
	c.add("bad", map[string]string{"cilium": `{"result":"failed","code":"sysctl.read-only","step":"sysctl"}`})
	c.add("good", map[string]string{"cilium": report("failed", "sysctl", "sysctl.read-only", version, 90*time.Minute)})
	c.add("later", map[string]string{"cilium": `{"result":"failed","code":"sysctl.read-only","step":"sysctl"}`})
	require.Contains(t, c.run(t).stdout, "3 nodes: sysctl.read-only, in step sysctl, agent cilium, since 1 hour\n")
}

func TestRDY6_ExitStatuses(t *testing.T) {
	c := newCluster(t)
	o := c.run(t)
	require.Zero(t, o.code)
	require.Equal(t, "0 nodes: none is selected\n", o.stdout)
	require.Equal(t, "fleet: no node matches --selector \"role=none\"\n", c.run(t, "-l", "role=none").stderr)
	for _, args := range [][]string{{"--no-such-flag"}, {"--output", "xml"}, {"now"}, {"--timeout", "-5s"}, {"--timeout", "5"}, {"-l", "a in"}, {"--daemonset", "agent"}} {
		o = c.run(t, args...)
		require.Equal(t, 64, o.code, args)
		require.Contains(t, o.stderr, "fleet: see --help\n")
		require.Equal(t, 2, strings.Count(o.stderr, "\n"), o.stderr)
		require.Empty(t, o.stdout)
	}
	require.Contains(t, c.run(t, "--timeout", "5").stderr, `invalid argument "5" for "--timeout" flag: time: missing unit`)
	require.Contains(t, c.run(t, "--kubeconf", "x").stderr, "unknown flag: --kubeconf: did you mean --kubeconfig?\n")
	o = c.run(t, "--help")
	require.Zero(t, o.code)
	require.Empty(t, o.stderr)
	golden(t, "help.txt", o.stdout)
	c.deny()
	o = c.run(t)
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "fleet: list nodes: ")
	require.Contains(t, o.stderr, `resources: ["nodes"], verbs: ["list"]`)
	c.kubeconfig = filepath.Join(t.TempDir(), "none")
	require.Equal(t, 1, c.run(t).code)
}
