// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
)

// Reporter reports the outcome of runs on a node to the cluster, where operators look: in
// a condition and an annotation of the node, and an event for each new failure. It writes
// only changes, and none for the time alone, so an unchanged node costs one request for
// its metadata per run. That another owner has applied, as the next pod does, is a change.
//
// It needs get on the node, patch on its status and, for events, create on events in the
// namespace default, where those of nodes are. Set a deadline in ctx, and do not let a
// run fail because it cannot be reported.
type Reporter struct {
	Dynamic  dynamic.Interface
	Metadata metadata.Interface
	Node     string // its name
}

// Report writes an outcome unless the node has it already, and returns whether the node
// was changed. A check that found something to do does not replace an earlier failure,
// which stays until a run succeeds.
func (r Reporter) Report(ctx context.Context, o Outcome) (sent bool, err error) {
	node, err := r.read(ctx)
	if err != nil {
		return false, err
	}
	var was Outcome
	if text, ok := node.GetAnnotations()[annotation+o.Agent]; ok {
		was = parse(o.Agent, text)
	}
	o.Owner = cmp.Or(o.Owner, was.Owner) // a check has applied nothing
	if o.sameCause(was) && o.Version == was.Version && o.Owner == was.Owner || o.Result == drifted && was.Result == failed {
		return false, nil
	}
	o.Time = time.Now().UTC().Truncate(time.Second)
	if o.Since = was.Since; was.status() != o.status() || was.Since.IsZero() {
		o.Since = o.Time
	}
	value, err := json.Marshal(o)
	if err != nil {
		return false, err
	}
	if err := r.patch(ctx, o, string(value), map[string]any{
		"type": o.Condition(), "status": o.status(), "reason": o.reason(), "message": o.Message,
		"lastHeartbeatTime": metav1.NewTime(o.Time), "lastTransitionTime": metav1.NewTime(o.Since),
	}); err != nil {
		return false, err
	}
	if o.Result != failed || o.sameCause(was) {
		return true, nil
	}
	return true, r.event(ctx, o, node.GetUID())
}

// Withdraw removes the outcome of the agent, for example when it was uninstalled, or of
// all agents if none is named. It returns whether the node was changed.
func (r Reporter) Withdraw(ctx context.Context, agent string) (sent bool, err error) {
	node, err := r.read(ctx)
	if err != nil {
		return false, err
	}
	for _, o := range Outcomes(node.GetAnnotations()) {
		if agent != "" && o.Agent != agent {
			continue
		}
		if err := r.patch(ctx, o, nil, map[string]any{"$patch": "delete", "type": o.Condition()}); err != nil {
			return sent, err
		}
		sent = true
	}
	return sent, nil
}

// Rules lists what it does in the cluster.
func (r Reporter) Rules() []Rule {
	return []Rule{
		{Verb: "get", Resource: "nodes", Name: r.Node},
		{Verb: "patch", Resource: "nodes/status", Name: r.Node},
		{Verb: "create", Resource: "events", Namespace: metav1.NamespaceDefault},
	}
}

func (r Reporter) read(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	switch {
	case r.Dynamic == nil || r.Metadata == nil:
		return nil, errNoClient
	case r.Node == "":
		return nil, errors.New("no node name given")
	}
	node, err := r.Metadata.Resource(nodes).Get(ctx, r.Node, metav1.GetOptions{})
	return node, explain(err, "get", nodes, "", "", r.Node)
}

// patch changes annotation and condition in one request. A patch of a node's status may
// change annotations too, as the kubelet does (nodeStatusStrategy of
// pkg/registry/core/node). The answer is the node's metadata, without its images.
func (r Reporter) patch(ctx context.Context, o Outcome, value any, condition map[string]any) error {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{annotation + o.Agent: value}},
		"status":   map[string]any{"conditions": []any{condition}}, // conditions are merged by their types
	})
	if err != nil {
		return err
	}
	_, err = r.Metadata.Resource(nodes).Patch(ctx, r.Node, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
	return explain(err, "patch", nodes, "status", "", r.Node)
}

// component is the source of an event.
const component = "slipway"

// event returns an event like the kubelet's for its node: in the namespace default, since
// a node has none.
func (r Reporter) event(ctx context.Context, o Outcome, uid types.UID) error {
	at := o.Time.Format(time.RFC3339)
	_, err := r.Dynamic.Resource(events).Namespace(metav1.NamespaceDefault).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Event",
		"metadata":       map[string]any{"generateName": r.Node + ".", "namespace": metav1.NamespaceDefault},
		"involvedObject": map[string]any{"apiVersion": "v1", "kind": "Node", "name": r.Node, "uid": string(uid)},
		"type":           "Warning", "reason": o.reason(), "message": o.Message, "count": int64(1),
		"firstTimestamp": at, "lastTimestamp": at,
		"source":             map[string]any{"component": component, "host": r.Node},
		"reportingComponent": component, "reportingInstance": r.Node,
	}}, metav1.CreateOptions{})
	return explain(err, "create", events, "", metav1.NamespaceDefault, "")
}
