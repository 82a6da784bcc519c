// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// networkUnavailable is the condition of a node whose pods get no network.
const networkUnavailable = "NetworkUnavailable"

// Node is the state in which the cluster knows that an agent has prepared its node, so
// that it can run pods. It is a bootstrap.Action. Put it into a plan after the step that
// publishes the CNI configuration and, if there is one, the step that waits until the
// runtime has loaded it (cri.Loaded). It needs get and patch on the node, and patch on
// its status.
type Node struct {
	Client dynamic.Interface
	Name   string

	// Taint is the key of the taint that keeps pods away until the agent is ready. It is
	// removed, whatever its value and effect; other taints stay. If empty, none is
	// removed.
	Taint string

	// Reason and Message are those of the condition NetworkUnavailable, which is set to
	// False unless it is False already, no matter which client set it. With an empty
	// Reason the condition is not changed.
	Reason, Message string

	// Annotations are set. Others stay.
	Annotations map[string]string
}

// Check lists what Apply would change.
func (n Node) Check(ctx context.Context) ([]string, error) {
	node, err := n.get(ctx)
	if err != nil {
		return nil, err
	}
	var changes []string
	for _, key := range slices.Sorted(maps.Keys(n.annotations(node))) {
		changes = append(changes, fmt.Sprintf("annotate the node %s with %s=%q", n.Name, key, n.Annotations[key]))
	}
	if n.unavailable(node) {
		changes = append(changes, fmt.Sprintf("set %s=False on the node %s (%s)", networkUnavailable, n.Name, n.Reason))
	}
	if all, kept := n.taints(node); len(kept) < len(all) {
		changes = append(changes, fmt.Sprintf("remove the taint %s of the node %s", n.Taint, n.Name))
	}
	return changes, nil
}

// Apply annotates the node, sets its condition and, last, removes the taint.
func (n Node) Apply(ctx context.Context) error {
	node, err := n.get(ctx)
	if err != nil {
		return err
	}
	if missing := n.annotations(node); len(missing) > 0 {
		patch := map[string]any{"metadata": map[string]any{"annotations": missing}}
		if err := n.patch(ctx, types.MergePatchType, patch); err != nil {
			return err
		}
	}
	if n.unavailable(node) {
		now := metav1.NewTime(time.Now())
		patch := map[string]any{"status": map[string]any{"conditions": []any{map[string]any{ // conditions are merged by their types
			"type": networkUnavailable, "status": "False", "reason": n.Reason, "message": n.Message,
			"lastHeartbeatTime": now, "lastTransitionTime": now,
		}}}}
		if err := n.patch(ctx, types.StrategicMergePatchType, patch, "status"); err != nil {
			return err
		}
	}
	return n.untaint(ctx, node)
}

// untaint removes the taint if the taints are still those that were read, so that no
// other client's taint is lost. Else it reads them again.
func (n Node) untaint(ctx context.Context, node *unstructured.Unstructured) (err error) {
	for range races {
		all, kept := n.taints(node)
		if len(kept) == len(all) {
			return nil
		}
		patch := []map[string]any{{"op": "test", "path": "/spec/taints", "value": all}}
		if len(kept) == 0 {
			patch = append(patch, map[string]any{"op": "remove", "path": "/spec/taints"})
		} else {
			patch = append(patch, map[string]any{"op": "replace", "path": "/spec/taints", "value": kept})
		}
		if err = n.patch(ctx, types.JSONPatchType, patch); !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) {
			return err // nil, or not due to a race: a failed test is "invalid"
		}
		if node, err = n.get(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("remove the taint %s of the node %s: its taints were changed %d times meanwhile", n.Taint, n.Name, races)
}

func (n Node) get(ctx context.Context) (*unstructured.Unstructured, error) {
	switch {
	case n.Client == nil:
		return nil, errNoClient
	case n.Name == "":
		return nil, errors.New("no node name given")
	}
	node, err := get(ctx, n.Client, nodes, "", n.Name)
	return node, explain(err, "get", nodes, "", "", n.Name)
}

func (n Node) patch(ctx context.Context, kind types.PatchType, patch any, subresource ...string) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = n.Client.Resource(nodes).Patch(ctx, n.Name, kind, body, metav1.PatchOptions{}, subresource...)
	return explain(err, "patch", nodes, strings.Join(subresource, "/"), "", n.Name)
}

// annotations returns the ones that the node lacks.
func (n Node) annotations(node *unstructured.Unstructured) map[string]string {
	missing := maps.Clone(n.Annotations)
	maps.DeleteFunc(missing, func(key, value string) bool {
		is, ok := node.GetAnnotations()[key]
		return ok && is == value
	})
	return missing
}

// unavailable reports whether the condition must be set.
func (n Node) unavailable(node *unstructured.Unstructured) bool {
	return n.Reason != "" && condition(node, networkUnavailable)["status"] != "False"
}

// taints returns the node's taints, and those to keep.
func (n Node) taints(node *unstructured.Unstructured) (all, kept []any) {
	all, _, _ = unstructured.NestedSlice(node.Object, "spec", "taints") // a malformed list counts as empty
	for _, t := range all {
		if taint, ok := t.(map[string]any); !ok || n.Taint == "" || taint["key"] != n.Taint {
			kept = append(kept, t)
		}
	}
	return all, kept
}
