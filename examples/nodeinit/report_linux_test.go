// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/kube"
)

// apiServer is an API server with a Node, as far as a report needs one;
// internal/verify/kubernetes/realkube shows what a real one does.
type apiServer struct {
	t    *testing.T
	port string

	mu          sync.Mutex
	requests    []string // but for reviews
	reviewed    bool     // it was asked for reviews
	denied      bool     // everything is, by a server that is ready
	annotations map[string]string
	condition   map[string]any
	events      []string
}

// newAPIServer serves on the node's own loopback.
func newAPIServer(t *testing.T, n *node) *apiServer {
	t.Helper()
	s := &apiServer{t: t, annotations: map[string]string{}}
	_, s.port, _ = net.SplitHostPort(n.serve(s))
	return s
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	if strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
		s.reviewed = true
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","status":{"allowed":true}}`)
		return
	}
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	if s.denied && r.URL.Path != "/readyz" || strings.Contains(r.URL.Path, "/configmaps/") {
		http.Error(w, "denied", http.StatusForbidden)
		return
	}
	switch r.Method {
	case http.MethodPatch:
		var patch struct {
			Metadata struct{ Annotations map[string]*string }
			Status   struct{ Conditions []map[string]any }
		}
		if err := json.Unmarshal(body, &patch); err != nil {
			s.t.Error(err)
		}
		for key, value := range patch.Metadata.Annotations {
			if delete(s.annotations, key); value != nil {
				s.annotations[key] = *value
			}
		}
		if s.condition = patch.Status.Conditions[0]; s.condition["$patch"] == "delete" {
			s.condition = nil
		}
	case http.MethodPost:
		var event struct{ Type, Reason, Message string }
		if err := json.Unmarshal(body, &event); err != nil {
			s.t.Error(err)
		}
		s.events = append(s.events, event.Type+" "+event.Reason+": "+event.Message)
	}
	w.Header().Set("Content-Type", "application/json")
	annotations, _ := json.Marshal(s.annotations)
	fmt.Fprintf(w, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"worker","uid":"1","annotations":%s}}`, annotations)
}

// denyAll makes all requests be denied.
func (s *apiServer) denyAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied = true
}

// since returns the requests since it was last called.
func (s *apiServer) since() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, s.requests = s.requests, nil
	return all
}

func (s *apiServer) outcome() kube.Outcome {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	all := kube.Outcomes(s.annotations)
	require.Len(s.t, all, 1)
	return all[0]
}

// requireNoMark fails unless the node has neither an annotation nor a condition.
func (s *apiServer) requireNoMark(args ...any) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Empty(s.t, s.annotations, args...)
	require.Nil(s.t, s.condition, args...)
}

const (
	read  = "GET /api/v1/nodes/worker"
	wrote = "PATCH /api/v1/nodes/worker/status"
	event = "POST /api/v1/namespaces/default/events"
)

func TestRDY5_TheNodeReportsTheOutcomeOfARun(t *testing.T) {
	n := newParallelNode(t)
	s := newAPIServer(t, n)
	const metrics = "/run/slipway.prom"
	run := func(command string, more ...string) outcome {
		return n.run(n.args(command, append([]string{"--report-node", "--node-name", "worker", "--k8s-api-server-urls", "http://127.0.0.1:" + s.port,
			"--report-metrics", metrics}, more...)...)...)
	}

	require.Equal(t, 2, run("check").code)
	require.Equal(t, []string{read, wrote}, s.since(), "pending changes are no failure")
	o := s.outcome()
	require.Equal(t, "cilium drifted config", o.Agent+" "+string(o.Result)+" "+o.Step)
	require.Contains(t, n.read(metrics), `slipway_run_failed{agent="cilium",op="check"} 0`)

	bad := []string{"--sysctl", "net.ipv4.no_such_key=1"}
	require.Equal(t, 1, run("apply", bad...).code)
	require.Equal(t, []string{read, wrote, event}, s.since())
	o = s.outcome()
	require.Equal(t, "failed sysctl sysctl.key-missing", string(o.Result)+" "+o.Step+" "+o.Code)
	require.NotEmpty(t, o.Version)
	require.False(t, o.Time.IsZero())
	require.Equal(t, "SlipwayCiliumReady False SysctlKeyMissing", fmt.Sprint(s.condition["type"], " ", s.condition["status"], " ", s.condition["reason"]))
	require.Contains(t, s.condition["message"], "net.ipv4.no_such_key")
	require.Len(t, s.events, 1)
	require.True(t, strings.HasPrefix(s.events[0], "Warning SysctlKeyMissing: "), s.events[0])
	require.Contains(t, n.read(metrics), `slipway_run_failed{agent="cilium",op="apply",step="sysctl",code="sysctl.key-missing"} 1`)

	require.Equal(t, 1, run("apply", bad...).code)
	require.Equal(t, []string{read}, s.since(), "unchanged")
	require.Equal(t, 2, run("check").code)
	require.Equal(t, []string{read}, s.since(), "a check does not replace the report of a failure")

	require.Zero(t, run("apply").code)
	require.Equal(t, []string{read, wrote}, s.since())
	require.Equal(t, "ready", s.outcome().Result)
	require.Equal(t, "True Ready", fmt.Sprint(s.condition["status"], " ", s.condition["reason"]))
	require.Zero(t, run("apply").code)
	require.Zero(t, run("check").code)
	require.Equal(t, []string{read, read}, s.since(), "no heartbeats")

	require.Contains(t, run("uninstall", "--dry-run").stdout, "would-change")
	require.Empty(t, s.since(), "a dry run reports nothing")
	require.Zero(t, run("uninstall").code)
	require.Equal(t, []string{read, wrote}, s.since())
	s.requireNoMark()

	require.Equal(t, 1, run("apply", "--host-proc", "/run/none").code)
	require.Equal(t, "failed", s.outcome().Result)
	require.Zero(t, run("uninstall").code)
	s.requireNoMark("though nothing is recorded on the node")
	require.Contains(t, n.read(metrics), `op="revert"`)
}

// A report that cannot be sent does not change a run's result.
func TestRDY5_WhatCannotBeReportedIsAWarning(t *testing.T) {
	n := newParallelNode(t)
	s := newAPIServer(t, n)
	s.denyAll()
	o := n.ok(n.args("apply", "--report-node", "--node-name", "worker", "--k8s-api-server-urls", "http://127.0.0.1:"+s.port,
		"--report-metrics", "/run/none/slipway.prom", "--output", "json")...)
	require.Contains(t, o.stderr, "the result is not reported")
	require.Contains(t, o.stderr, "--report-node: get nodes worker")
	require.Contains(t, o.stderr, "--report-metrics: ")
	beforehand, _, done := strings.Cut(o.stderr, "step done")
	require.True(t, done, o.stderr)
	require.Contains(t, beforehand, "the result will not be reported")

	o = n.ok(n.args("check", "--report-node", "--enable-k8s=false")...)
	require.Contains(t, o.stderr, "there is no API server")
}

// Drift is noticed in the next check, reported once, and left alone.
func TestRDY5_CheckEveryReportsDrift(t *testing.T) {
	n := newParallelNode(t)
	s := newAPIServer(t, n)
	flags := []string{"--report-node", "--node-name", "worker", "--k8s-api-server-urls", "http://127.0.0.1:" + s.port}
	n.ok(n.args("apply", append(flags, "--owner", "pod-1")...)...)
	require.Equal(t, "ready", s.outcome().Result)
	var stdout, stderr bytes.Buffer
	cmd := n.Command(binary, n.args("check", append(flags, "--every", "100ms", "--timeout", "30s")...)...)
	cmd.Env = append(cmd.Environ(), "SLIPWAY_EVERY=100ms")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Start())
	reads := func() (reads int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, r := range s.requests {
			if r == read {
				reads++
			}
		}
		return reads
	}
	looks := func(more int) {
		t.Helper()
		until := reads() + more
		require.Eventually(t, func() bool { return reads() >= until }, time.Minute, 10*time.Millisecond, &stderr)
	}
	looks(2)
	n.shell("rm /etc/cni/net.d/05-cilium.conflist")
	looks(3)
	o := s.outcome()
	require.Equal(t, "drifted cni", string(o.Result)+" "+o.Step)
	require.Empty(t, n.shell("ls /etc/cni/net.d"), "nothing is changed")
	n.ok(n.args("apply", "--owner", "pod-1")...)
	looks(3)
	require.Equal(t, "ready", s.outcome().Result)

	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.NoError(t, cmd.Wait(), "told to end, it ends well: %s", &stderr)
	require.False(t, s.reviewed, "a thousand nodes would")
	count := map[string]int{}
	for _, r := range s.since() {
		count[r]++
	}
	require.Equal(t, 3, count[wrote], "ready, drifted, ready")
	shown := regexp.MustCompile(`20\S+Z|[0-9.]+[mµ]?s\b`).ReplaceAllString(stdout.String(), "T")
	require.Equal(t, 3, strings.Count(shown, "\nT\n")+1, shown)
	_, drifted, _ := strings.Cut(shown, "\nT\n")
	require.Regexp(t, `^  cni +would-change +T  write file /etc/cni/net.d/05-cilium.conflist\n( +note: .*\n)?8 steps: 6 unchanged, 1 would-change, 1 skipped \(T\)\nT\n`+
		`  cni +unchanged +T( +note: .*)?\n8 steps: 7 unchanged, 1 skipped \(T\)\n$`, drifted, "only what has changed")
	require.Empty(t, s.events)
}

// firewalled is a node with an API server, and a firewall like Cilium's.
type firewalled struct {
	*node
	port string
}

func newFirewalled(t *testing.T) firewalled {
	t.Helper()
	t.Parallel() // the tests mostly wait
	n := newNode(t)
	_, port, _ := net.SplitHostPort(n.serve(&cluster{}))
	n.shell("nft add table ip test; nft add chain ip test in '{ type filter hook input priority 0; }'")
	return firewalled{n, port}
}

// leavesOut drops packets that match an nft(8) rule, unless they have the mark of Cilium's own
// packets. Like Cilium's policy, it drops silently.
func (n firewalled) leavesOut(match string) {
	n.t.Helper()
	n.shell("nft add rule ip test in " + match + " meta mark != 0x10b00 drop")
}

// build runs build-config on the node.
func (n firewalled) build(host string, args ...string) outcome {
	n.t.Helper()
	return n.run(append([]string{"build-config", "--k8s-api-server-urls", "http://" + host + ":" + n.port, "--dest", filepath.Join(n.work, "config"),
		"--node-name", "node1", "--k8s-namespace", "ns1", "--log-level", "debug", "--k8s-retry-spread", "100ms"}, args...)...)
}

// If a policy of the host firewall drops packets to the API server, or to the DNS server for
// its name, no agent runs that could change the policy, unless its configuration can be read.
func TestCFG13_BuildConfigPassesCiliumsHostFirewallByName(t *testing.T) {
	n := newFirewalled(t)
	var server net.PacketConn
	n.do(func() (err error) {
		server, err = net.ListenPacket("udp", "127.0.0.1:53")
		return err
	})
	t.Cleanup(func() { server.Close() })
	go answerNames(server)
	n.write("/etc/resolv.conf", "nameserver 127.0.0.1\n")
	o := n.build("api.test")
	require.Zero(t, o.code, o.stderr)
	require.NotContains(t, o.stderr, "mark")

	n.leavesOut("udp dport 53")
	n.leavesOut("tcp dport " + n.port)
	o = n.build("api.test")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stderr, "the API server answers only with Cilium's mark")
	o = n.build("127.0.0.1", "--enable-k8s-host-firewall-bypass=false", "--k8s-client-connection-timeout", "100ms", "--timeout", "1s")
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "--timeout of 1s is over")
}

// answerNames answers each question for an IPv4 address with 127.0.0.1, and other questions
// with no records (RFC 1035, section 4).
func answerNames(server net.PacketConn) {
	packet := make([]byte, 512)
	for {
		size, from, err := server.ReadFrom(packet)
		if err != nil {
			return
		}
		end := 12 // of the question, after the header
		for end < size && packet[end] != 0 {
			end += 1 + int(packet[end])
		}
		end += 5 // the root, type and class
		answer := append([]byte{packet[0], packet[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, packet[12:end]...)
		if packet[end-3] == 1 { // type A
			answer[7] = 1
			answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1)
		}
		_, _ = server.WriteTo(answer, from)
	}
}
