// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package kube holds an API server's answers against what it was asked for. A proxy, or
// whatever else answers at its address, may return 200 for something else, and a decision
// must not be taken by that.
package kube

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kinds are the kinds of resources. Of a custom resource only the version is known.
var kinds = map[string]string{
	"configmaps": "ConfigMap", "nodes": "Node", "daemonsets.apps": "DaemonSet",
	"customresourcedefinitions.apiextensions.k8s.io": "CustomResourceDefinition",
}

// Answers returns an error if the object is none of a resource, or is not the one of that
// name; an empty name is that of any. Metadata alone does not tell its resource.
func Answers(o metav1.Object, gvr schema.GroupVersionResource, namespace, name string) error {
	is, want := "", ""
	if object, whole := o.(*unstructured.Unstructured); whole {
		kind := cmp.Or(kinds[gvr.GroupResource().String()], object.GetKind())
		is, want = object.GetAPIVersion()+" "+object.GetKind()+" ", gvr.GroupVersion().String()+" "+kind+" "
	}
	is += o.GetNamespace() + "/" + o.GetName()
	want += namespace + "/" + cmp.Or(name, o.GetName())
	if is != want || o.GetName() == "" {
		return fmt.Errorf("the answer is %.300q instead of %q", is, want)
	}
	return nil
}
