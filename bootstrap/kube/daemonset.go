// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-dev/slipway/internal/kube"
)

// The reasons of a decision. With the first three the agent does not come back.
const (
	gone         = "gone"
	deleting     = "deleting"
	notMatching  = "not-matching"
	restarting   = "restarting"
	unauthorized = "unauthorized"
	unknown      = "unknown"
)

// Decide asks the cluster whether an agent that ends should undo its work on its node, or
// another pod of its DaemonSet will take its place there. An agent's pod calls it on SIGTERM.
// Set a deadline in ctx, shorter than the pod's terminationGracePeriodSeconds.
//
// Uninstall is true if the agent does not come back, so that its changes to the node may be
// undone. It is false unless that is certain: an agent that undoes the node and then comes
// back has cut off all its pods. The reason is one of
//   - gone: its DaemonSet does not exist;
//   - deleting: its DaemonSet is being deleted, and its pods with it;
//   - not-matching: its DaemonSet no longer selects the node;
//   - restarting: its DaemonSet exists, and selects the node;
//   - unauthorized: it may not ask, since its account was deleted, or never had the right;
//   - unknown: the cluster gave no answer.
//
// The agent comes back unless it is one of the first three. The error is the cause of the
// last two.
//
// When a whole release is removed, the agent's account and its rights are deleted a
// moment after the DaemonSet, and the answer may be unauthorized. A cluster that has lost
// its signing key answers the same to every agent, so uninstall is false then: keep the
// account for longer than the DaemonSet, or decide by the reason yourself, such as by a watch
// of the account, which goes on when it is deleted (examples/agent). Taints are ignored, since
// they come and go.
func Decide(ctx context.Context, client dynamic.Interface, namespace, daemonSet, node string) (uninstall bool, reason string, err error) {
	reason, err = decide(ctx, client, namespace, daemonSet, node)
	if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
		reason = unauthorized
	}
	return slices.Contains([]string{gone, deleting, notMatching}, reason), reason, err
}

func decide(ctx context.Context, client dynamic.Interface, namespace, name, nodeName string) (string, error) {
	switch {
	case client == nil:
		return unknown, errNoClient
	case namespace == "" || name == "" || nodeName == "":
		return unknown, errors.New("needs the namespace and name of the DaemonSet, and the name of the node")
	}
	set, err := get(ctx, client, daemonSets, namespace, name)
	switch {
	case err != nil && isGone(err):
		return gone, nil
	case err != nil:
		return unknown, explain(err, "get", daemonSets, "", namespace, name)
	case set.GetDeletionTimestamp() != nil && slices.Contains(set.GetFinalizers(), metav1.FinalizerOrphanDependents):
		return restarting, nil // its pods stay
	case set.GetDeletionTimestamp() != nil:
		return deleting, nil
	}
	node, err := get(ctx, client, nodes, "", nodeName)
	if err != nil {
		return unknown, explain(err, "get", nodes, "", "", nodeName)
	}
	matches, err := selects(set, node)
	switch {
	case err != nil:
		return unknown, fmt.Errorf("daemonset %s/%s: %w", namespace, name, err)
	case !matches:
		return notMatching, nil
	}
	return restarting, nil
}

// isGone reports whether the object does not exist in a cluster that has such objects:
// other servers that answer in its place return 404 too, but name no object.
func isGone(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || kube.NotServed(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details.Kind == daemonSets.Resource && details.Name != ""
}

// selects reports whether pods of the DaemonSet may run on the node, by its name, its
// labels and the required affinity.
func selects(set, node *unstructured.Unstructured) (bool, error) {
	pod, found, err := unstructured.NestedMap(set.Object, "spec", "template", "spec")
	if err != nil || !found {
		return false, errors.New("it has no pod template")
	}
	if name, ok := pod["nodeName"].(string); ok && name != "" && name != node.GetName() {
		return false, nil
	}
	labels, _, err := unstructured.NestedStringMap(pod, "nodeSelector")
	if err != nil {
		return false, errors.New("its nodeSelector is not a map of strings")
	}
	for key, value := range labels {
		if is, ok := node.GetLabels()[key]; !ok || is != value {
			return false, nil
		}
	}
	return affine(pod, node)
}
