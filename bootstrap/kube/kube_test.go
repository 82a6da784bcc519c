// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/kube"
	"github.com/slipway-dev/slipway/internal/code"
)

var (
	_ bootstrap.Action = kube.Node{}
	_ bootstrap.Action = kube.Definitions{}
)

// serve answers each path with its given status and body.
func serve(t *testing.T, answers map[string]string) *rest.Config {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, body, _ := strings.Cut(answers[r.URL.Path], " ")
		code := http.StatusNotFound
		if status != "" {
			_, err := fmt.Sscan(status, &code)
			require.NoError(t, err)
		}
		if strings.HasPrefix(body, "{") {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return &rest.Config{Host: s.URL}
}

func TestRDY1_AnAPIServerThatIsNotReadySaysWhy(t *testing.T) {
	for answer, want := range map[string]string{
		"200 ok": "",
		"500 [+]ping ok\n[-]etcd failed: reason withheld\n[-]informer-sync failed: reason withheld\nreadyz check failed\n": "it answers 500 Internal Server Error, etcd failed: reason withheld, informer-sync failed: reason withheld",
		"403 no\x1b": "it answers 403 Forbidden",
		"404 " + strings.Repeat("[-]x\n", 100000): "it answers 404 Not Found, x, x, x, x, x",
	} {
		changes, err := kube.APIServer(serve(t, map[string]string{"/readyz": answer})).Check(t.Context())
		require.NoError(t, err)
		if want == "" {
			require.Empty(t, changes)
			continue
		}
		require.Equal(t, []string{"wait for the API server: " + want}, changes)
	}
	changes, err := kube.APIServer(&rest.Config{Host: "127.0.0.1:1"}).Check(t.Context())
	require.NoError(t, err)
	require.Contains(t, changes[0], "refused")
	_, err = kube.APIServer(nil).Check(t.Context())
	require.ErrorContains(t, err, "no client given")
}

// After 101 the connection belongs to the caller, and no context ends its reads.
func TestRDY1_AnotherProtocolHoldsNoGate(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
			_, _ = conn.Read(make([]byte, 1)) // until the client closes it
		}
	}))
	defer s.Close()
	changes, err := kube.APIServer(&rest.Config{Host: s.URL}).Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"wait for the API server: it answers 101 Switching Protocols"}, changes)
}

// Only a cluster that has DaemonSets can report that one is gone, and another object that is
// being deleted uninstalls nothing.
func TestRDY4_CFG4_NotEvery404MeansGone(t *testing.T) {
	const path = "/apis/apps/v1/namespaces/kube-system/daemonsets/agent"
	set := func(pod string) string {
		return `200 {"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"agent","namespace":"kube-system"},"spec":{"template":` + pod + `}}`
	}
	const deleted = `200 {"apiVersion":"apps/v1","kind":%q,"metadata":{"name":%q,"namespace":%q,"deletionTimestamp":"2026-01-02T03:04:05Z"}}`
	for answer, want := range map[string]string{
		fmt.Sprintf(deleted, "DaemonSet", "agent", "kube-system"):  "deleting",
		fmt.Sprintf(deleted, "Deployment", "agent", "kube-system"): "unknown",
		fmt.Sprintf(deleted, "DaemonSet", "other", "kube-system"):  "unknown",
		fmt.Sprintf(deleted, "DaemonSet", "agent", "default"):      "unknown",
		`404 {"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","details":{"name":"agent","group":"apps","kind":"daemonsets"},"code":404}`: "gone",
		`404 {"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`:                                                               "unknown",
		"404 404 page not found":             "unknown",
		"404 <html>no such backend</html>":   "unknown",
		"503 no endpoints":                   "unknown",
		"200 {}":                             "unknown",
		set(`{}`):                            "unknown",
		set(`{"spec":{"nodeSelector":"x"}}`): "unknown",
		set(`{"spec":{"affinity":{"nodeAffinity":7}}}`): "unknown",
		set(`{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Like","values":["x"]}]}]}}}}}`): "unknown",
		set(`{"spec":{}}`):                         "restarting",
		set(`{"spec":{"nodeName":"me"}}`):          "restarting",
		set(`{"spec":{"nodeName":"you"}}`):         "not-matching",
		set(`{"spec":{"nodeSelector":{"a":"c"}}}`): "not-matching",
		set(`{"spec":{"nodeSelector":{"a":"b"}}}`): "restarting",
		set(`{"spec":{"nodeSelector":{"zz":""}}}`): "not-matching",
	} {
		client, err := dynamic.NewForConfig(serve(t, map[string]string{
			path:               answer,
			"/api/v1/nodes/me": `200 {"apiVersion":"v1","kind":"Node","metadata":{"name":"me","labels":{"a":"b"}}}`,
		}))
		require.NoError(t, err)
		uninstall, reason, err := kube.Decide(t.Context(), client, "kube-system", "agent", "me")
		require.Equal(t, want, reason, "%s: %v", answer, err)
		require.Equal(t, slices.Contains([]string{"deleting", "gone", "not-matching"}, want), uninstall)
	}
}

func TestAMissingArgumentIsAnErrorThatNamesIt(t *testing.T) {
	client, err := dynamic.NewForConfig(serve(t, nil))
	require.NoError(t, err)
	crd := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a.b", "labels": map[string]any{"v": "x"}}}}
	for want, a := range map[string]bootstrap.Action{
		"no client given":                         kube.Node{Name: "me"},
		"no node name given":                      kube.Node{Client: client},
		"no client given: make":                   kube.Definitions{},
		"no definitions":                          kube.Definitions{Client: client},
		"no label given":                          kube.Definitions{Client: client, List: []*unstructured.Unstructured{crd}},
		"definition of the custom resource a.b: ": kube.Definitions{Client: client, List: []*unstructured.Unstructured{crd}, VersionLabel: "v"},
		"get nodes me: ":                          kube.Node{Client: client, Name: "me"},
	} {
		_, err := a.Check(t.Context())
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, a.Apply(t.Context()), want)
	}
	require.ErrorContains(t, kube.Established(nil, "a.b").Wait(t.Context()), "no client given: make one")
}

func TestPLAN18_RDY4_WhatTheAPIServerAnswersHasACode(t *testing.T) {
	for want, answer := range map[string]string{
		"kube.forbidden":    `403 {"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}`,
		"kube.unauthorized": `401 {"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","message":"no","code":401}`,
		"":                  `404 {"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","message":"no","code":404}`,
	} {
		client, err := dynamic.NewForConfig(serve(t, map[string]string{"/api/v1/nodes/me": answer}))
		require.NoError(t, err)
		_, err = kube.Node{Client: client, Name: "me"}.Check(t.Context())
		require.Equal(t, want, code.Of(err), "%v", err)
	}
	client, err := dynamic.NewForConfig(&rest.Config{Host: "127.0.0.1:1"})
	require.NoError(t, err)
	_, err = kube.Node{Client: client, Name: "me"}.Check(t.Context())
	require.Equal(t, "kube.unavailable", code.Of(err), "%v", err)
	uninstall, reason, err := kube.Decide(t.Context(), client, "kube-system", "agent", "me")
	require.Equal(t, "kube.unavailable", code.Of(err), "%v", err)
	require.Equal(t, "unknown", reason)
	require.False(t, uninstall, "an unreachable API server is no reason to take the network away")
}

// RBAC grants create without a name only, and a name is that of the object alone.
func TestCFG8_TheRuleThatIsNamedGrants(t *testing.T) {
	const denied = `403 {"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}`
	client, err := dynamic.NewForConfig(serve(t, map[string]string{
		"/apis/apps/v1/namespaces/kube-system/daemonsets/agent":       denied,
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions":     denied,
		"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":      denied,
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a.b": "404 " + strings.Replace(strings.TrimPrefix(denied, "403 "), "Forbidden", "NotFound", 1),
	}))
	require.NoError(t, err)
	_, _, err = kube.Decide(t.Context(), client, "kube-system", "agent", "me")
	require.ErrorContains(t, err, `(grant it by a Role in namespace kube-system with the rule {apiGroups: ["apps"], resources: ["daemonsets"], resourceNames: ["agent"], verbs: ["get"]})`)

	crd := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a.b", "labels": map[string]any{"v": "1.0"}}}}
	err = kube.Definitions{Client: client, List: []*unstructured.Unstructured{crd}, VersionLabel: "v"}.Apply(t.Context())
	require.ErrorContains(t, err, `(grant it by a ClusterRole with the rule {apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], verbs: ["create"]}, or see which admission policy denies it)`)
}
