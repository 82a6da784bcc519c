// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package config_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/kube"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

// grants are the roles and bindings that we ship for nodeinit and its report, bound to the
// account deployed instead of agent, until the test ends.
func grants(t *testing.T) (all []realkube.Document) {
	t.Helper()
	const bound, instead = "    name: agent\n", "    name: deployed\n"
	for _, d := range append(manifest(t, "nodeinit.yaml", bound, instead), manifest(t, "report/rbac.yaml", bound, instead)...) {
		if !strings.Contains(d.Kind, "Role") {
			continue
		}
		all = append(all, d)
		require.NoError(t, server.Admin().ApplyYAML(t.Context(), d.Path, []byte(d.Text)))
		t.Cleanup(func() { require.NoError(t, server.Admin().Delete(context.WithoutCancel(t.Context()), d.Path)) })
	}
	require.Len(t, all, 8)
	return all
}

// ruled are the resources that the roles have rules for, one resource and one verb each.
func ruled(t *testing.T, all []realkube.Document) (resources []string) {
	t.Helper()
	for _, d := range all {
		for _, rule := range d.Rules() {
			require.NotContains(t, rule.Resource+rule.Verb, ",")
			resources = append(resources, rule.Resource)
		}
	}
	slices.Sort(resources)
	return slices.Compact(resources)
}

// Before anything is changed, check asks a real API server for each right that the sources and
// the report need. Of the shipped manifests each rule is needed: a right that is missing is named
// with the rule that grants it. With all of them nothing is missing, and the sources are read.
func TestRDY8_CheckAsksTheAPIServerForItsRights(t *testing.T) {
	const node = "asking"
	createNode(t, node, values{"zone": "asking"}, nil)
	program := buildNodeinit(t)
	check := func(u realkube.User) (code int, text string) {
		cmd := exec.CommandContext(t.Context(), program, append([]string{"check", "--only", "preflight", "--report-node", "--node-name", node, "--state-dir", t.TempDir(),
			"--k8s-kubeconfig-path", kubeconfig(t, server, u), "--k8s-namespace", "kube-system"}, threeFlags...)...)
		out, err := cmd.CombinedOutput()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			return -1, err.Error()
		}
		return cmd.ProcessState.ExitCode(), string(out)
	}
	// says waits until the authorizer has seen the last change.
	says := func(u realkube.User, wantCode int, want ...string) {
		t.Helper()
		eventually(t, func(context.Context) error {
			code, text := check(u)
			for _, line := range want {
				if !strings.Contains(text, line) {
					return fmt.Errorf("exit status %d, without %q: %s", code, line, text)
				}
			}
			if code != wantCode || len(want) == 0 && strings.Contains(text, "access: ") {
				return fmt.Errorf("exit status %d: %s", code, text)
			}
			return nil
		})
	}
	all := grants(t)
	says(deployed, 0)
	client, _ := connect(t, kube.Connection{Kubeconfig: kubeconfig(t, server, deployed)})
	_, err := configresolve.Resolve(t.Context(), sources(t, client, "kube-system", node, "cilium-node-config", "node")...)
	require.NoError(t, err)

	var tested []string
	for _, missing := range []struct {
		resource   string
		code       int
		says, rule string
	}{
		{"configmaps", 1, "access: the API server does not allow to get configmaps cilium-config in kube-system", `[""], resources: ["configmaps"], resourceNames: ["cilium-config"], verbs: ["get"]`},
		{"ciliumnodeconfigs", 1, "access: the API server does not allow to list ciliumnodeconfigs in kube-system", `["cilium.io"], resources: ["ciliumnodeconfigs"], verbs: ["list"]`},
		{"nodes", 1, "access: the API server does not allow to get nodes asking", `[""], resources: ["nodes"], resourceNames: ["asking"], verbs: ["get"]`},
		{"nodes/status", 0, "access: --report-node: the API server does not allow to patch nodes/status asking", `[""], resources: ["nodes/status"], resourceNames: ["asking"], verbs: ["patch"]`},
		{"events", 0, "access: --report-node: the API server does not allow to create events in default", `[""], resources: ["events"], verbs: ["create"]`},
	} {
		tested = append(tested, missing.resource)
		for _, d := range all { // both ClusterRoles grant to get nodes
			without := d.Without(func(r realkube.Rule) bool { return r.Resource == missing.resource })
			require.NoError(t, server.Admin().ApplyYAML(t.Context(), d.Path, []byte(without)))
		}
		says(deployed, missing.code, missing.says+", which the plan needs (grant it by a ", "with the rule {apiGroups: "+missing.rule+"})", "kube.forbidden")
		for _, d := range all {
			require.NoError(t, server.Admin().ApplyYAML(t.Context(), d.Path, []byte(d.Text)))
		}
		says(deployed, 0)
	}
	require.ElementsMatch(t, ruled(t, all), tested)
	says(nobody, 1, "to get configmaps cilium-config in kube-system, ", "to list ciliumnodeconfigs in kube-system, ", "to get nodes asking, ",
		"to patch nodes/status asking, ", "to create events in default, ")

	const basic = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:basic-user"
	require.NoError(t, server.Admin().Delete(t.Context(), basic))
	t.Cleanup(func() {
		require.NoError(t, server.Admin().ApplyYAML(context.WithoutCancel(t.Context()), basic, []byte(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "system:basic-user"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:basic-user"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:authenticated"}]
`)))
	})
	says(deployed, 0, "access: cannot be looked at: create selfsubjectaccessreviews", "(kube.forbidden)")
}
