// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// asking is a command line that reports to the cluster, and reads from it.
func (s *apiServer) asking(args ...string) []string {
	return append(args, "--node-name", "worker", "--k8s-api-server-urls", "http://127.0.0.1:"+s.port)
}

// A report that the cluster denies is a warning, once and by name.
func TestRDY8_CheckAsksWhetherItMayReport(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	s := newAPIServer(t, n)
	s.deny("patch nodes/status;create events;")
	check := s.asking(n.args("check", "--report-node")...)
	o := n.run(check...)
	require.Equal(t, 2, o.code, o.stderr)
	require.Equal(t, []string{"get nodes worker", "patch nodes/status worker", "create events default"}, s.asked())
	require.Contains(t, o.stdout, `access: --report-node: the API server does not allow to patch nodes/status worker, which the plan needs (grant it by a ClusterRole with the rule {apiGroups: [""], resources: ["nodes/status"], resourceNames: ["worker"], verbs: ["patch"]}) (kube.forbidden)`)
	require.Contains(t, o.stdout, "access: --report-node: the API server does not allow to create events in default, ")
	require.NotContains(t, o.stdout, "to get nodes")

	o = n.run(append(check, "--ignore-preflight", "access")...)
	require.Equal(t, 2, o.code, o.stderr)
	require.NotContains(t, o.stdout, "access: ")
	o = n.run(n.args("check")...)
	require.NotContains(t, o.stdout, "access: ")
	require.Empty(t, s.asked(), "who neither reports nor reads needs no cluster")
}

// Of the sources, all that is denied is named at once, with what the first one has met.
func TestRDY8_CheckNamesAllThatItsSourcesLack(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	s := newAPIServer(t, n)
	s.deny("get configmaps;list ciliumnodeconfigs;")
	check := s.asking("check", "--source", "config-map:ns/c,cilium-node-config:ns,node,cilium-node-config:ns/one")
	needed := []string{"get configmaps ns c", "get nodes worker", "list cilium.io ciliumnodeconfigs ns", "get nodes worker", "get cilium.io ciliumnodeconfigs ns one"}
	o := n.run(check...)
	require.Equal(t, 1, o.code, o.stderr)
	require.Equal(t, needed, s.asked())
	for _, line := range []string{
		`step config: resolve: .*get configmaps ns/c: .*\[kube\.forbidden\]`,
		`step config: resolve: the API server does not allow to get configmaps c in ns, .*\[kube\.forbidden\]`,
		`step config: resolve: the API server does not allow to list ciliumnodeconfigs in ns, .*verbs: \["list"\].*\[kube\.forbidden\]`,
	} {
		require.Regexp(t, line, o.stderr)
	}

	o = n.run(append(check, "--only", "preflight")...)
	require.Equal(t, 1, o.code, o.stdout)
	require.Equal(t, needed, s.asked(), "nothing else would tell")
	require.Contains(t, o.stderr, "step preflight: check: access: the API server does not allow to get configmaps c in ns, ")

	o = n.run(append(check, "--only", "preflight", "--enable-k8s=false")...)
	require.Zero(t, o.code, o.stderr)
	s.deny("")
	o = n.run(append(check, "--only", "preflight")...)
	require.Zero(t, o.code, o.stderr)
	require.NotContains(t, o.stdout, "access: ")
}

// A cluster that does not answer is a warning.
func TestRDY8_ThatTheClusterCannotBeAskedIsAWarning(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	o := n.run("check", "--only", "preflight", "--source", "config-map:ns/c", "--k8s-api-server-urls", "http://127.0.0.1:9")
	require.Zero(t, o.code, o.stderr)
	require.Regexp(t, `access: cannot be looked at: create selfsubjectaccessreviews.*\(kube\.unavailable\)`, o.stdout)
}
