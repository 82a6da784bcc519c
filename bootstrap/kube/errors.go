// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-dev/slipway/internal/kube"
)

var (
	nodes       = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	daemonSets  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
	events      = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

var errNoClient = errors.New("no client given: make one with configresolve/kube.Connection.Client")

// explain adds the request, and the rule that would grant it.
func explain(err error, verb string, resource schema.GroupVersionResource, subresource, namespace, name string) error {
	return kube.Request{Verbs: []string{verb}, Resource: resource.GroupResource(), Subresource: subresource, Namespace: namespace, Name: name}.Explain(err)
}

// get reads an object, and makes sure that the answer is that object: what a node is to do
// is decided by it.
func get(ctx context.Context, client dynamic.Interface, gvr schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	object, err := client.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		err = kube.Answers(object, gvr, namespace, name)
	}
	return object, err
}

// final reports whether waiting does not help: a client without permission does not get
// it by waiting.
func final(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}
