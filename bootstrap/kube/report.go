// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
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

// Reporter tells the cluster what runs on a node have come to, where operators look: by
// a condition and an annotation of the node, and an event for each failure that is new.
// Nothing is written that is there already, and nothing again for its time alone, so a
// node that stays as it is costs one request for its metadata a run.
//
// It needs get on the node, patch on its status and, for events, create on events of
// the namespace default, where those of nodes are. Set a deadline in ctx, and let a run
// not fail because it cannot be reported.
type Reporter struct {
	Dynamic  dynamic.Interface
	Metadata metadata.Interface
	Node     string // its name
}

// Report tells of an outcome unless the node has it already, and reports whether the
// node was changed. A check that found something to do says less than a failure before
// it, which stays until a run has ended well.
func (r Reporter) Report(ctx context.Context, o Outcome) (sent bool, err error) {
	node, err := r.read(ctx)
	if err != nil {
		return false, err
	}
	var was Outcome
	if text, ok := node.GetAnnotations()[annotation+o.Agent]; ok {
		was = parse(o.Agent, text)
	}
	if o.sameCause(was) && o.Version == was.Version || o.Result == Drifted && was.Result == Failed {
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
	if o.Result != Failed || o.sameCause(was) {
		return true, nil
	}
	return true, r.event(ctx, o, node.GetUID())
}

// Withdraw takes back what was told of the agent, as when it was uninstalled; of all
// agents if none is named. It reports whether the node was changed.
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

func (r Reporter) read(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	switch {
	case r.Dynamic == nil || r.Metadata == nil:
		return nil, errNoClient
	case r.Node == "":
		return nil, errors.New("no name of a node given")
	}
	node, err := r.Metadata.Resource(nodes).Get(ctx, r.Node, metav1.GetOptions{})
	if err != nil {
		return nil, explain(err, "get", nodes, "", r.Node)
	}
	return node, nil
}

// patch changes annotation and condition at once. A node's status takes annotations
// too, which is how the kubelet has them (nodeStatusStrategy of pkg/registry/core/node).
func (r Reporter) patch(ctx context.Context, o Outcome, value any, condition map[string]any) error {
	return Node{Client: r.Dynamic, Name: r.Node}.patch(ctx, types.StrategicMergePatchType, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{annotation + o.Agent: value}},
		"status":   map[string]any{"conditions": []any{condition}}, // merged by their types
	}, "status")
}

// component is who an event is from.
const component = "slipway"

// event is one as the kubelet makes them of its node: in the namespace default, since
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
	if err != nil {
		return explain(err, "create", events, "", r.Node)
	}
	return nil
}
