// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package node_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/kube"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

const notReady = "node.agent.example.org/not-ready" // the manifest's

var nodes = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}

func ready(client dynamic.Interface, node string) kube.Node {
	return kube.Node{Client: client, Name: node, Taint: notReady, Reason: "AgentIsUp", Message: "the agent runs", Annotations: map[string]string{"agent.example.org/version": "1"}}
}

// The agent's own account has the least rights: it marks its node, and can change nothing else.
func TestRDY3_TheNodeIsMarkedAsReady(t *testing.T) {
	const name = "ready"
	createNode(t, name, fields{"zone": "a"}, taint("dedicated", "x", "NoSchedule"), taint(notReady, "", "NoExecute"), taint(notReady, "", "NoSchedule"))
	require.NoError(t, server.Admin().Merge(t.Context(), "/api/v1/nodes/"+name+"/status", fields{"status": fields{"conditions": []any{
		fields{"type": "Ready", "status": "True"}, fields{"type": "NetworkUnavailable", "status": "True", "reason": "NoRouteCreated"},
	}}}))
	n := ready(client(t, agentOn(t, name)), name)
	changes, err := n.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{
		`annotate the node ready with agent.example.org/version="1"`,
		"set NetworkUnavailable=False on the node ready (AgentIsUp)",
		"remove the taint node.agent.example.org/not-ready of the node ready",
	}, changes)
	report, err := (&bootstrap.Plan{Steps: []bootstrap.Step{{Name: "node", Action: n}}}).Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, bootstrap.Changed, report.Results[0].Status)

	node := getNode(t, name)
	require.Equal(t, []string{"dedicated"}, taintsOf(t, name))
	require.Equal(t, "1", node.GetAnnotations()["agent.example.org/version"])
	conditions, _, err := unstructured.NestedSlice(node.Object, "status", "conditions")
	require.NoError(t, err)
	require.Len(t, conditions, 2, "others' conditions stay")
	for _, c := range conditions {
		if c := c.(fields); c["type"] == "NetworkUnavailable" {
			require.Equal(t, "False", c["status"])
			require.Equal(t, "AgentIsUp", c["reason"])
			require.Equal(t, "the agent runs", c["message"])
		}
	}
	again, err := n.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, again)
	version := node.GetResourceVersion()
	require.NoError(t, n.Apply(t.Context()))
	require.Equal(t, version, getNode(t, name).GetResourceVersion(), "the second time, nothing is written")
}

// meddler calls f before each of the first patches of taints is sent.
type meddler struct {
	next    http.RoundTripper
	times   int32
	f       func()
	patches atomic.Int32
}

func (m *meddler) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch && r.Header.Get("Content-Type") == string(types.JSONPatchType) && m.patches.Add(1) <= m.times {
		m.f()
	}
	return m.next.RoundTrip(r)
}

func meddled(t *testing.T, m *meddler) dynamic.Interface {
	t.Helper()
	c := config(t, "token-of-admin")
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		m.next = next
		return m
	})
	d, err := dynamic.NewForConfig(c)
	require.NoError(t, err)
	return d
}

// A concurrent change of taints, between read and patch, is not lost, and costs one retry.
func TestRDY3_NoTaintIsLost(t *testing.T) {
	createNode(t, "race", nil, taint(notReady, "", "NoSchedule"), taint("a", "", "NoSchedule"))
	m := &meddler{times: 1, f: func() {
		untaint(t, "race", taint("b", "", "NoSchedule"), taint(notReady, "", "NoSchedule"), taint("a", "", "NoSchedule"))
	}}
	require.NoError(t, ready(meddled(t, m), "race").Apply(t.Context()))
	require.Equal(t, []string{"b", "a"}, taintsOf(t, "race"))
	require.EqualValues(t, 2, m.patches.Load())

	// Another agent, in a rolling update, was first.
	createNode(t, "twins", nil, taint(notReady, "", "NoSchedule"))
	m = &meddler{times: 1, f: func() { untaint(t, "twins", taint("c", "", "NoSchedule")) }}
	require.NoError(t, ready(meddled(t, m), "twins").Apply(t.Context()))
	require.Equal(t, []string{"c"}, taintsOf(t, "twins"))
	require.EqualValues(t, 1, m.patches.Load(), "there is nothing left to do")

	// Changes that never stop are an error.
	createNode(t, "endless", nil, taint(notReady, "", "NoSchedule"))
	count := 0
	m = &meddler{times: 1000, f: func() {
		count++
		untaint(t, "endless", taint(notReady, "", "NoSchedule"), taint(fmt.Sprint("x", count), "", "NoSchedule"))
	}}
	require.ErrorContains(t, ready(meddled(t, m), "endless").Apply(t.Context()), "its taints were changed 5 times meanwhile")

	createNode(t, "many", nil, taint("a", "", "NoSchedule"), taint(notReady, "", "NoSchedule"))
	var all sync.WaitGroup
	for range 8 {
		c := admin(t)
		all.Go(func() {
			if err := ready(c, "many").Apply(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Equal(t, []string{"a"}, taintsOf(t, "many"))
}

// The manifest's policy, tried with real pod tokens: RBAC alone would allow everything.
func TestRDY3_TheAgentChangesItsOwnNodeOnly(t *testing.T) {
	createNode(t, "mine", fields{"zone": "a"}, taint(notReady, "", "NoSchedule"), taint("other", "", "NoSchedule"))
	createNode(t, "theirs", nil, taint(notReady, "", "NoSchedule"))
	agent := client(t, agentOn(t, "mine"))
	refused := func(want, node, patch string, below ...string) {
		t.Helper()
		eventually(t, func(ctx context.Context) error { // until the policy is in force
			_, err := agent.Resource(nodes).Patch(ctx, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, below...)
			if err == nil || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("not refused: %w", errors.Join(err, errors.New(want)))
			}
			return nil
		})
	}
	refused("the agent may change the node of its own pod only", "theirs", `{"metadata":{"annotations":{"a":"1"}}}`)
	refused("the agent may change the node of its own pod only", "theirs", `{"status":{"conditions":[]}}`, "status")
	refused("the agent may not change labels", "mine", `{"metadata":{"labels":{"zone":"b"}}}`)
	refused("the agent may not change labels", "mine", `{"spec":{"unschedulable":true}}`)
	refused("change no other", "mine", `{"spec":{"taints":null}}`)
	refused("change no other", "mine", `{"spec":{"taints":[{"key":"other","effect":"NoExecute"}]}}`)
	refused("change no other", "mine", `{"spec":{"taints":[{"key":"other","effect":"NoSchedule"},{"key":"node.agent.example.org/not-ready","effect":"NoExecute"}]}}`)

	err := ready(agent, "theirs").Apply(t.Context())
	require.True(t, apierrors.IsForbidden(err) || apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, "patch nodes theirs: ")
	require.Equal(t, []string{notReady}, taintsOf(t, "theirs"))
	require.NoError(t, ready(agent, "mine").Apply(t.Context()))
	require.Equal(t, []string{"other"}, taintsOf(t, "mine"))

	// A token bound to no pod, such as one from the account's secret, changes no node.
	unbound := client(t, tokenOf(t, "agent", fields{}))
	err = ready(unbound, "theirs").Apply(t.Context())
	require.ErrorContains(t, err, "the agent may change the node of its own pod only")
}

// Each rule of the manifest is needed, and if it is missing the error names the rule to add;
// all rules together suffice.
func TestRDY3_TheManifestGrantsTheLeast(t *testing.T) {
	createNode(t, "least", nil)
	agent := client(t, agentOn(t, "least"))
	work := func(ctx context.Context) error {
		untaint(t, "least", taint(notReady, "", "NoSchedule"))
		if err := server.Admin().Merge(ctx, "/api/v1/nodes/least/status", fields{"status": fields{"conditions": nil}}); err != nil {
			return err
		}
		err := ready(agent, "least").Apply(ctx)
		_, _, errDecide := kube.Decide(ctx, agent, "kube-system", "agent", "least")
		account, errWatch := agent.Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}).Namespace("kube-system").
			Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=agent"})
		if errWatch == nil {
			account.Stop()
		}
		return cmp.Or(err, errDecide, errWatch)
	}
	eventually(t, work)
	agents, err := realkube.Manifest(deployDir + "agent.yaml")
	require.NoError(t, err)
	rules := 0
	for _, d := range agents {
		if !strings.HasSuffix(d.Kind, "Role") {
			continue
		}
		for _, rule := range d.Rules() {
			rules++
			require.NotContains(t, rule.Resource+rule.Verb, ",", "one resource and one verb a rule")
			require.NoError(t, server.Admin().ApplyYAML(t.Context(), d.Path, []byte(d.Without(func(r realkube.Rule) bool { return r == rule }))))
			eventually(t, func(ctx context.Context) error {
				err := work(ctx)
				want := []string{fmt.Sprintf("apiGroups: [%q], resources: [%q]", rule.Group, rule.Resource), fmt.Sprintf("verbs: [%q]", rule.Verb)}
				if rule.Verb == "watch" { // the agent's own, which the server's answer explains
					want = []string{"cannot watch resource", fmt.Sprintf("%q in API group %q", rule.Resource, rule.Group)}
				}
				if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want[0]) || !strings.Contains(err.Error(), want[1]) {
					return fmt.Errorf("without %q: %w", rule.Text, errors.Join(err, errors.New("want a denial that names it")))
				}
				return nil
			})
			require.NoError(t, server.Admin().ApplyYAML(t.Context(), d.Path, []byte(d.Text)))
			eventually(t, work)
		}
	}
	require.Equal(t, 5, rules)
}
