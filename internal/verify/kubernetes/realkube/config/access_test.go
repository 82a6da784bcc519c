// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package config_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

// reportGrants are the rights of examples/deploy/report, whose role is in the namespace default.
func reportGrants(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for path, document := range grants(t, "../../../../../examples/deploy/report/rbac.yaml") {
		all[strings.Replace(path, "/kube-system/", "/default/", 1)] = document
	}
	require.Len(t, all, 4)
	return all
}

// without returns a role without its rule for the resource.
func without(document, resource string) string {
	for _, rule := range ruleLine.FindAllStringSubmatch(document, -1) {
		if rule[2] == resource {
			document = strings.Replace(document, rule[0], "", 1)
		}
	}
	if strings.HasSuffix(document, "rules:\n") {
		document = strings.TrimSuffix(document, "rules:\n") + "rules: []\n"
	}
	return document
}

// Before anything is changed, check asks a real API server for each right that the sources and
// the report need: with the shipped manifests nothing is missing, and a right that is missing is
// named with the rule that grants it.
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
	apply := func(path, document string) {
		t.Helper()
		require.NoError(t, server.Admin().ApplyYAML(t.Context(), path, []byte(document)))
	}
	all := grants(t, "../../../../../examples/deploy/nodeinit.yaml")
	maps.Copy(all, reportGrants(t))
	grantAll(t, all)
	says(deployed, 0)

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
		for path, document := range all { // both ClusterRoles grant to get nodes
			apply(path, without(document, missing.resource))
		}
		says(deployed, missing.code, missing.says+", which the plan needs (grant it by a ", "with the rule {apiGroups: "+missing.rule+"})", "kube.forbidden")
		for path, document := range all {
			apply(path, document)
		}
		says(deployed, 0)
	}
	says(nobody, 1, "to get configmaps cilium-config in kube-system, ", "to list ciliumnodeconfigs in kube-system, ", "to get nodes asking, ",
		"to patch nodes/status asking, ", "to create events in default, ")

	const basic = rbacPath + "clusterrolebindings/system:basic-user"
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
