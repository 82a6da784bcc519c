// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package config_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/kube"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

// TestCFG8_DeniedAccessNamesTheRule denies each right in turn, then grants exactly the rule
// that the error prints.
func TestCFG8_DeniedAccessNamesTheRule(t *testing.T) {
	const name = "denied"
	createNamespace(t, name)
	createConfigMap(t, name, "cilium-config", values{"a": "cm"})
	createNodeConfig(t, name, nodeConfig{"x", `{"matchLabels":{"zone":"a"}}`, values{"b": "cr"}})
	createNode(t, name, values{"zone": "a"}, nil)
	const account = `User "system:serviceaccount:kube-system:nobody" cannot `
	steps := []struct {
		denied, says, rule string
		namespaced         bool
	}{
		{"get v1 configmaps 403", `read source config-map:denied/cilium-config: get configmaps denied/cilium-config: configmaps "cilium-config" is forbidden: ` + account + `get resource "configmaps" in API group "" in the namespace "denied" (grant it by a Role in namespace denied with the rule `,
			`{apiGroups: [""], resources: ["configmaps"], resourceNames: ["cilium-config"], verbs: ["get"]}`, true},
		{"list v2 ciliumnodeconfigs 403", `read source cilium-node-config:denied: list ciliumnodeconfigs.cilium.io in namespace denied: ciliumnodeconfigs.cilium.io is forbidden: ` + account + `list resource "ciliumnodeconfigs" in API group "cilium.io" in the namespace "denied" (grant it by a Role in namespace denied with the rule `,
			`{apiGroups: ["cilium.io"], resources: ["ciliumnodeconfigs"], verbs: ["list"]}`, true},
		{"get v1 nodes 403", `read source cilium-node-config:denied: ciliumnodeconfigs denied/x: its selector needs the labels of the node: get nodes denied: nodes "denied" is forbidden: ` + account + `get resource "nodes" in API group "" at the cluster scope (grant it by a ClusterRole with the rule `,
			`{apiGroups: [""], resources: ["nodes"], resourceNames: ["denied"], verbs: ["get"]}`, false},
	}
	for i, step := range steps {
		asked := map[string]int{}
		client, userAgent := connect(t, kube.Connection{Kubeconfig: kubeconfig(t, server, nobody)})
		list := sources(t, client, name, name, three...)
		_, err := configresolve.Resolve(t.Context(), list...)
		require.EqualError(t, err, step.says+step.rule+")")
		for _, request := range audited(t, userAgent) {
			asked[request]++
			require.LessOrEqual(t, asked[request], 2, request)
		}
		require.Equal(t, 2, asked[step.denied], "the denied request is retried once the server reports ready")
		grant(t, name, i, step.rule, step.namespaced)
		eventually(t, func(ctx context.Context) error { // until the authorizer has seen the rule
			if _, err := configresolve.Resolve(ctx, list...); err != nil && err.Error() == step.says+step.rule+")" {
				return err
			}
			return nil
		})
	}
	client, _ := connect(t, kube.Connection{Kubeconfig: kubeconfig(t, server, nobody)})
	config, err := configresolve.Resolve(t.Context(), sources(t, client, name, name, three...)...)
	require.NoError(t, err)
	require.Equal(t, values{"a": "cm", "b": "cr"}, maps.Collect(config.All()))
}

// grant gives the account nobody the rule printed in an error.
func grant(t *testing.T, namespace string, i int, rule string, namespaced bool) {
	t.Helper()
	role, kind, name := "/apis/rbac.authorization.k8s.io/v1/", "ClusterRole", fmt.Sprintf("grant-%d", i)
	if namespaced {
		role, kind = role+"namespaces/"+namespace+"/", "Role"
	}
	plural := strings.ToLower(kind)
	require.NoError(t, server.Admin().ApplyYAML(t.Context(), role+plural+"s/"+name, fmt.Appendf(nil, `apiVersion: rbac.authorization.k8s.io/v1
kind: %s
metadata: {name: %s}
rules: [%s]
`, kind, name, rule)))
	require.NoError(t, server.Admin().ApplyYAML(t.Context(), role+plural+"bindings/"+name, fmt.Appendf(nil, `apiVersion: rbac.authorization.k8s.io/v1
kind: %sBinding
metadata: {name: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: %s}
subjects: [{kind: ServiceAccount, namespace: kube-system, name: nobody}]
`, kind, name, kind, name)))
}

func TestCFG8_UnknownTokenIsFinal(t *testing.T) {
	client, _ := connect(t, kube.Connection{Kubeconfig: kubeconfig(t, server, realkube.User{Name: "stranger"})})
	_, err := configresolve.Resolve(t.Context(), kube.ConfigMap{Client: client, Namespace: "default", Name: "x"})
	require.ErrorContains(t, err, "get configmaps default/x: Unauthorized (the API server does not accept the credentials")
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
