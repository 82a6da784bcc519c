// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/kube"
	"github.com/slipway-dev/slipway/internal/failure"
)

// reviewed answers SelfSubjectAccessReviews like an API server that allows some verbs.
func reviewed(t *testing.T, allowed ...string) dynamic.Interface {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" {
			http.NotFound(w, r)
			return
		}
		var review map[string]any
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		asked := review["spec"].(map[string]any)["resourceAttributes"].(map[string]any)
		status := map[string]any{"allowed": false, "reason": "no RBAC policy matched"}
		for _, verb := range allowed {
			if asked["verb"] == verb && asked["subresource"] == "" {
				status = map[string]any{"allowed": true}
			}
		}
		review["status"] = status
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	client, err := dynamic.NewForConfig(&rest.Config{Host: s.URL})
	require.NoError(t, err)
	return client
}

func TestRDY8_WhatRBACDenies(t *testing.T) {
	node := kube.Node{Name: "me", Taint: "agent.example.org/not-ready", Reason: "AgentIsUp"}
	findings, err := kube.Access(reviewed(t, "get"), node.Rules()...)(t.Context())
	require.NoError(t, err)
	require.Len(t, findings, 2)
	require.EqualError(t, findings[0], `the API server does not allow to patch nodes me, which the plan needs (grant it by a ClusterRole with the rule {apiGroups: [""], resources: ["nodes"], resourceNames: ["me"], verbs: ["patch"]}): no RBAC policy matched`)
	require.ErrorContains(t, findings[1], "patch nodes/status me")
	require.Equal(t, "kube.forbidden", bootstrap.Code(findings[0]))
	require.ErrorIs(t, findings[0], failure.ErrCertain)

	node.Reason = ""
	findings, err = kube.Access(reviewed(t, "get", "patch"), node.Rules()...)(t.Context())
	require.NoError(t, err)
	require.Empty(t, findings)
	require.Len(t, kube.Node{Name: "me"}.Rules(), 1)
	list := kube.Rule{Verb: "list", Resource: "ciliumnodeconfigs", Namespace: "kube-system"}
	findings, err = kube.Access(reviewed(t), list, list)(t.Context())
	require.NoError(t, err)
	require.Len(t, findings, 1)
	require.ErrorContains(t, findings[0], "does not allow to list ciliumnodeconfigs in kube-system, which")
}

func TestAccessThatCannotBeAskedFor(t *testing.T) {
	rules := []kube.Rule{{Verb: "get", Resource: "nodes"}}
	_, err := kube.Access(nil, rules...)(t.Context())
	require.ErrorContains(t, err, "no client given")
	_, err = kube.Access(reviewed(t), kube.Rule{Resource: "nodes"})(t.Context())
	require.ErrorContains(t, err, "a rule needs a verb and a resource")
	client, err := dynamic.NewForConfig(&rest.Config{Host: "127.0.0.1:1"})
	require.NoError(t, err)
	_, err = kube.Access(client, rules...)(t.Context())
	require.Equal(t, "kube.unavailable", bootstrap.Code(err))
	client, err = dynamic.NewForConfig(serve(t, map[string]string{"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": "201 {}"}))
	require.NoError(t, err)
	_, err = kube.Access(client, rules...)(t.Context())
	require.Error(t, err)
}
