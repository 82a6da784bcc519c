// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package kube holds an API server's answers against what it was asked for. A proxy, or
// whatever else answers at its address, may return 200 for something else, and a decision
// must not be taken by that. An error names the request, and what would grant it.
package kube

import (
	"cmp"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// NotServed reports whether the answer was 404 for the resource rather than an
// object: the server has no such resource or version, or is no API server.
func NotServed(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && unexpected(status.Status().Details)
}

// unexpected reports whether the 404 carried no Status of an API server.
func unexpected(details *metav1.StatusDetails) bool {
	if details == nil {
		return true
	}
	for _, cause := range details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse {
			return true
		}
	}
	return false
}
