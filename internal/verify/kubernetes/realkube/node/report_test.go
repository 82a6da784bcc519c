// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/slipway-dev/slipway/bootstrap/kube"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

// reporterOn reports with the component's rights, as a pod on the node.
func reporterOn(t *testing.T, token, node string) kube.Reporter {
	t.Helper()
	c := config(t, token)
	d, err := dynamic.NewForConfig(c)
	require.NoError(t, err)
	m, err := metadata.NewForConfig(c)
	require.NoError(t, err)
	return kube.Reporter{Dynamic: d, Metadata: m, Node: node}
}

func conditionsOf(t *testing.T, name string) map[string]fields {
	t.Helper()
	all, _, err := unstructured.NestedSlice(getNode(t, name).Object, "status", "conditions")
	require.NoError(t, err)
	found := map[string]fields{}
	for _, c := range all {
		found[c.(fields)["type"].(string)] = c.(fields)
	}
	return found
}

// eventsOf lists the reasons of the node's events, as kubectl describe node shows them.
func eventsOf(t *testing.T, name string) (reasons []string) {
	t.Helper()
	raw, err := server.Admin().Get(t.Context(), "/api/v1/namespaces/default/events?fieldSelector=involvedObject.kind=Node,involvedObject.name="+name+
		",involvedObject.uid="+string(getNode(t, name).GetUID()))
	require.NoError(t, err)
	var list struct{ Items []struct{ Reason string } }
	require.NoError(t, json.Unmarshal(raw, &list))
	for _, e := range list.Items {
		reasons = append(reasons, e.Reason)
	}
	return reasons
}

// A report is a condition, an annotation and an event, sent in one patch and only after a
// change, with the component's rights alone.
func TestRDY5_TheNodeShowsTheOutcomeOfARun(t *testing.T) {
	const name = "reported"
	createNode(t, name, fields{"zone": "a"})
	require.NoError(t, server.Admin().Merge(t.Context(), "/api/v1/nodes/"+name+"/status", fields{"status": fields{
		"capacity": fields{"cpu": "4"}, "conditions": []any{fields{"type": "Ready", "status": "True"}},
	}}))
	r := reporterOn(t, tokenOn(t, "reporter", name), name)
	failed := kube.Outcome{Agent: "cilium", Result: "failed", Step: "sysctl", Code: "sysctl.read-only", Version: "v1", Message: "no"}
	tell := func(o kube.Outcome) bool {
		t.Helper()
		before := getNode(t, name).GetResourceVersion()
		sent, err := r.Report(t.Context(), o)
		require.NoError(t, err)
		require.Equal(t, sent, before != getNode(t, name).GetResourceVersion())
		return sent
	}
	outcome := func() kube.Outcome {
		t.Helper()
		all := kube.Outcomes(getNode(t, name).GetAnnotations())
		require.NotEmpty(t, all)
		return all[len(all)-1] // cilium, after acme
	}
	eventually(t, func(ctx context.Context) error { _, err := r.Report(ctx, failed); return err })
	c := conditionsOf(t, name)
	require.Len(t, c, 2, "the kubelet's stays")
	ours := c["SlipwayCiliumReady"]
	require.Equal(t, []any{"False", "SysctlReadOnly", "no"}, []any{ours["status"], ours["reason"], ours["message"]})
	first := outcome()
	require.Equal(t, first.Since.Format(time.RFC3339), ours["lastTransitionTime"])
	require.Equal(t, []string{"SysctlReadOnly"}, eventsOf(t, name))

	other := failed
	other.Message = "no, after 3s"
	require.False(t, tell(other), "a new message alone is no news")
	require.False(t, tell(kube.Outcome{Agent: "cilium", Result: "drifted", Step: "cni", Version: "v1"}), "a failure says more")

	other = failed
	other.Version = "v2"
	require.True(t, tell(other))
	require.Len(t, eventsOf(t, name), 1, "not a new failure")
	require.Equal(t, first.Since, outcome().Since, "not a transition")

	other.Step, other.Code = "cni", "cni.no-loopback"
	require.True(t, tell(other))
	require.ElementsMatch(t, []string{"SysctlReadOnly", "CniNoLoopback"}, eventsOf(t, name))
	require.Equal(t, first.Since, outcome().Since)

	require.True(t, tell(kube.Outcome{Agent: "cilium", Result: "ready", Version: "v2"}))
	ours = conditionsOf(t, name)["SlipwayCiliumReady"]
	require.Equal(t, []any{"True", "Ready"}, []any{ours["status"], ours["reason"]})
	require.False(t, tell(kube.Outcome{Agent: "cilium", Result: "ready", Version: "v2"}))
	require.True(t, tell(kube.Outcome{Agent: "cilium", Owner: "pod-2", Result: "ready", Version: "v2"}), "the next pod has applied")
	require.False(t, tell(kube.Outcome{Agent: "cilium", Owner: "pod-2", Result: "ready", Version: "v2"}))
	require.False(t, tell(kube.Outcome{Agent: "cilium", Result: "ready", Version: "v2"}), "a check has applied nothing")
	require.Equal(t, "pod-2", outcome().Owner)
	require.True(t, tell(kube.Outcome{Agent: "acme", Result: "ready"}), "each agent has its own")
	require.Len(t, conditionsOf(t, name), 3)

	sent, err := r.Withdraw(t.Context(), "cilium")
	require.NoError(t, err)
	require.True(t, sent)
	require.Contains(t, conditionsOf(t, name), "SlipwayAcmeReady")
	require.NotContains(t, conditionsOf(t, name), "SlipwayCiliumReady")
	sent, err = r.Withdraw(t.Context(), "")
	require.NoError(t, err)
	require.True(t, sent)
	require.Len(t, conditionsOf(t, name), 1)
	require.Empty(t, kube.Outcomes(getNode(t, name).GetAnnotations()))
	sent, err = r.Withdraw(t.Context(), "")
	require.NoError(t, err)
	require.False(t, sent)
}

// The account can change only its own report, on its own node.
func TestRDY5_TheReportersAccountChangesNothingElse(t *testing.T) {
	createNode(t, "guarded", fields{"zone": "a"})
	createNode(t, "foreign", nil)
	for _, name := range []string{"guarded", "foreign"} {
		require.NoError(t, server.Admin().Merge(t.Context(), "/api/v1/nodes/"+name, fields{"metadata": fields{"annotations": fields{"theirs": "1"}}}))
		require.NoError(t, server.Admin().Merge(t.Context(), "/api/v1/nodes/"+name+"/status", fields{"status": fields{
			"capacity": fields{"cpu": "4"}, "conditions": []any{fields{"type": "Ready", "status": "True"}},
		}}))
	}
	token := tokenOn(t, "reporter", "guarded")
	r := reporterOn(t, token, "guarded")
	eventually(t, func(ctx context.Context) error {
		_, err := r.Report(ctx, kube.Outcome{Agent: "cilium", Result: "ready"})
		return err
	})
	as := realkube.NewClient(server.URL, server.CAPEM, token, nil)
	patch := func(client *realkube.Client, path string, what fields) error {
		body, err := json.Marshal(what)
		require.NoError(t, err)
		_, err = client.Do(t.Context(), http.MethodPatch, "/api/v1/nodes/"+path, "application/strategic-merge-patch+json", body)
		return err
	}
	condition := func(kind string) fields {
		return fields{"status": fields{"conditions": []any{fields{"type": kind, "status": "False"}}}}
	}
	meta := func(of string, what any) fields { return fields{"metadata": fields{of: what}} }
	eventually(t, func(context.Context) error { // until the policies are in force
		if patch(as, "foreign/status", condition("SlipwayXReady")) == nil {
			return fmt.Errorf("another node's report is accepted")
		}
		return nil
	})
	require.NoError(t, patch(as, "guarded/status", condition("SlipwayXReady")))
	tell := func(namespace, kind, name string) error {
		return as.Create(t.Context(), "/api/v1/namespaces/"+namespace+"/events", event(kind, name))
	}
	for _, tc := range []struct {
		err  error
		says string
	}{
		{patch(as, "foreign/status", condition("SlipwayYReady")), "the node of its own pod only"},
		{patch(as, "guarded/status", condition("Ready")), "conditions Slipway*Ready only"},
		{patch(as, "guarded/status", condition("XSlipwayXReady")), "conditions Slipway*Ready only"},
		{patch(as, "guarded/status", meta("labels", fields{"zone": "b"})), "neither labels, nor finalizers"},
		{patch(as, "guarded/status", meta("finalizers", []string{"example.org/x"})), "neither labels, nor finalizers"},
		{patch(as, "guarded/status", meta("annotations", fields{"theirs": "2"})), "may set the annotations report.slipway.dev/* only"},
		{patch(as, "guarded/status", meta("annotations", fields{"config.cilium.io/mtu": "9"})), "may set the annotations report.slipway.dev/* only"},
		{patch(as, "guarded/status", meta("annotations", fields{"theirs": nil})), "may remove the annotations report.slipway.dev/* only"},
		{patch(as, "guarded/status", fields{"status": fields{"capacity": fields{"cpu": "400"}}}), "nothing of the status but a condition"},
		{patch(as, "guarded/status", fields{"status": fields{"addresses": []any{fields{"type": "InternalIP", "address": "10.0.0.1"}}}}), "nothing of the status but a condition"},
		{patch(as, "guarded/status", fields{"status": fields{"capacity": nil}}), "nothing of the status but a condition"},
		{patch(as, "guarded", fields{"spec": fields{"unschedulable": true}}), `cannot patch resource \"nodes\"`},
		{patch(as, "guarded", meta("annotations", fields{"report.slipway.dev/cilium": "x"})), `cannot patch resource \"nodes\"`},
		{tell("default", "Node", "foreign"), "events of the node of its own pod only"},
		{tell("default", "Pod", "guarded"), "events of the node of its own pod only"},
		{tell("kube-system", "Node", "guarded"), `cannot create resource \"events\"`},
	} {
		require.Error(t, tc.err, tc.says)
		require.Regexp(t, "status 4(03|22)", tc.err.Error())
		require.Contains(t, strings.ReplaceAll(tc.err.Error(), `\\"`, `\"`), tc.says)
	}
	require.NoError(t, as.Create(t.Context(), "/api/v1/namespaces/default/events", event("Node", "guarded")))
	unbound := realkube.NewClient(server.URL, server.CAPEM, tokenOf(t, "reporter", fields{}), nil)
	require.ErrorContains(t, patch(unbound, "guarded/status", condition("SlipwayZReady")), "the node of its own pod only")
	require.NoError(t, patch(server.Admin(), "guarded/status", condition("Ready")), "others are not bound")
}

func event(kind, name string) fields {
	return fields{"apiVersion": "v1", "kind": "Event", "metadata": fields{"generateName": name + ".", "namespace": ""},
		"involvedObject": fields{"kind": kind, "name": name}, "reason": "X", "message": "x", "type": "Warning"}
}
