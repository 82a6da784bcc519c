// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package fleet has thousands of nodes report to one real API server, and lists them with
// examples/fleet: it measures what a report costs the API server and etcd, and what the listing
// costs the caller.
package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/kube"
	configkube "github.com/slipway-dev/slipway/configresolve/kube"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
	"github.com/slipway-dev/slipway/internal/verify/programs"
)

type fields = map[string]any

// parallel calls f with 0 to n-1, a few at a time.
func parallel(n int, f func(int) error) error {
	var group sync.WaitGroup
	errs := make([]error, n)
	slots := make(chan struct{}, 8)
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			errs[i] = f(i)
			<-slots
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func name(i int) string { return fmt.Sprintf("worker-%05d", i) }

// createNode makes a node as large as a kubelet's: fifty images.
func createNode(ctx context.Context, s *realkube.Server, i int) error {
	if err := s.Admin().Create(ctx, "/api/v1/nodes", fields{"metadata": fields{"name": name(i)}}); err != nil {
		return err
	}
	return s.Admin().Merge(ctx, "/api/v1/nodes/"+name(i)+"/status", fields{"status": fields{"images": realkube.Images(),
		"conditions": []fields{{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}}}})
}

// traffic counts requests and the bytes of bodies.
type traffic struct {
	next                     http.RoundTripper
	requests, sent, received atomic.Int64
}

func (t *traffic) RoundTrip(r *http.Request) (*http.Response, error) {
	t.requests.Add(1)
	t.sent.Add(max(r.ContentLength, 0))
	response, err := t.next.RoundTrip(r)
	if err == nil {
		response.Body = &counted{response.Body, &t.received}
	}
	return response, err
}

type counted struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// outcome is the report of the i-th node: 3 in 100 fail, in two ways.
func outcome(i int) kube.Outcome {
	o := kube.Outcome{Agent: "cilium", Owner: "a pod", Result: "ready", Version: "v0.9.0 (commit 0123456789abcdef0123456789abcdef01234567), go1.25.0 linux/amd64"}
	switch i % 100 {
	case 0, 1:
		o.Result, o.Step, o.Code, o.Message = "failed", "sysctl", "sysctl.read-only", `step "sysctl": apply: write /proc/sys/net/ipv4/ip_forward: read-only file system`
	case 2:
		o.Result, o.Step, o.Code, o.Message = "failed", "cni", "cni.no-loopback", `step "cni": check: the plugin loopback is not there`
	}
	return o
}

// round has all nodes report once, and logs the cost.
func round(t *testing.T, client *configkube.Client, count *traffic, nodes int) (requests int) {
	t.Helper()
	r0, s0, b0 := count.requests.Load(), count.sent.Load(), count.received.Load()
	require.NoError(t, parallel(nodes, func(i int) error {
		_, err := kube.Reporter{Dynamic: client.Dynamic, Metadata: client.Metadata, Node: name(i)}.Report(t.Context(), outcome(i))
		return err
	}))
	requests = int(count.requests.Load() - r0)
	n := float64(nodes)
	t.Logf("%d nodes: %.2f requests, %.0f bytes sent and %.0f received a node", nodes, float64(requests)/n,
		float64(count.sent.Load()-s0)/n, float64(count.received.Load()-b0)/n)
	return requests
}

// runsAgent makes a DaemonSet, and its pod on a node, which does not report.
func runsAgent(t *testing.T, s *realkube.Server, node string) {
	t.Helper()
	labels, spec := fields{"labels": fields{"app": "agent"}}, fields{"nodeName": node, "containers": []fields{{"name": "agent", "image": "agent"}}}
	for path, object := range map[string]fields{
		"/api/v1/namespaces/default/serviceaccounts":  {"metadata": fields{"name": "default"}},
		"/apis/apps/v1/namespaces/default/daemonsets": {"metadata": fields{"name": "agent"}, "spec": fields{"selector": fields{"matchLabels": fields{"app": "agent"}}, "template": fields{"metadata": labels, "spec": fields{"containers": spec["containers"]}}}},
	} {
		require.NoError(t, s.Admin().Create(t.Context(), path, object))
	}
	require.NoError(t, s.Admin().Create(t.Context(), "/api/v1/namespaces/default/pods", fields{"metadata": fields{"name": "agent-x", "labels": labels["labels"]}, "spec": spec}))
}

func TestRDY6_ThousandsOfNodes(t *testing.T) {
	nodes := 5000
	if testing.Short() {
		nodes = 600
	}
	s, err := realkube.Start(context.WithoutCancel(t.Context()), realkube.Options{NoAudit: true, Log: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, parallel(nodes, func(i int) error { return createNode(t.Context(), s, i) }))
	kubeconfig, err := s.Kubeconfig(s.Dir(), realkube.Admin, "")
	require.NoError(t, err)
	count := &traffic{}
	client, err := configkube.Connection{Kubeconfig: kubeconfig, Wrap: func(next http.RoundTripper) http.RoundTripper {
		count.next = next
		return count
	}}.Client()
	require.NoError(t, err)

	failed := nodes / 100 * 3
	require.Equal(t, 2*nodes+failed, round(t, client, count, nodes), "a read and a patch a node, and an event a failure")
	require.Equal(t, nodes, round(t, client, count, nodes), "an unchanged report is not written")

	program, err := programs.Program{Package: "./examples/fleet"}.Build(t.Context())
	require.NoError(t, err)
	ask := func(args ...string) (string, int) {
		var stdout, stderr bytes.Buffer
		cmd := exec.Command(program, append([]string{"--kubeconfig", kubeconfig}, args...)...)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		start := time.Now()
		if err := cmd.Run(); err != nil {
			require.ErrorAs(t, err, new(*exec.ExitError), stderr.String())
		}
		use := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		t.Logf("fleet %s: %v, %v of processor time, %d MiB", args, time.Since(start).Round(time.Millisecond), cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), use.Maxrss>>10)
		require.Less(t, use.Maxrss, int64(100<<10), "KiB")
		return stdout.String() + stderr.String(), cmd.ProcessState.ExitCode()
	}
	for _, i := range []int{7, 8} { // two that are well by their reports
		require.NoError(t, s.Admin().Merge(t.Context(), "/api/v1/nodes/"+name(i)+"/status", fields{"status": fields{"conditions": []fields{{"type": "Ready", "status": "Unknown"}}}}))
	}
	text, code := ask()
	require.Equal(t, 2, code, text)
	require.Contains(t, text, fmt.Sprintf("%d nodes: %d ready, %d failed, 2 node not ready\n", nodes, nodes-failed-2, failed))
	require.Contains(t, text, fmt.Sprintf("%d nodes: sysctl.read-only, in step sysctl, agent cilium", nodes/50))
	text, code = ask("--output", "json")
	require.Equal(t, 2, code, text)
	require.Equal(t, failed+2, strings.Count(text, `"worker-`))
	text, code = ask("--why", name(9), "--daemonset", "default/agent")
	require.Equal(t, 1, code, text)
	require.Contains(t, text, "get daemonset default/agent: ")
	runsAgent(t, s, name(9))
	text, code = ask("--why", name(9), "--daemonset", "default/agent")
	require.Equal(t, 2, code, text)
	require.Contains(t, text, "result   outdated\n")
	text, code = ask("--why", name(2))
	require.Equal(t, 2, code, text)
	require.Contains(t, text, "the plugin loopback is not there")
}
