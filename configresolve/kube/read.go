// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/slipway-dev/slipway/internal/kube"
)

const pageSize = 250

// feedKey identifies a feed's content: one object, or all of a namespace.
type feedKey struct {
	client          *Client
	gvr             schema.GroupVersionResource
	namespace, name string
}

// metadataOnly reports whether only the metadata of the objects is read.
func (k feedKey) metadataOnly() bool { return k.gvr == nodes || k.gvr == definitions }

// explain adds the request to its error, and the rule that would grant it.
func (k feedKey) explain(err error, verbs ...string) error {
	return kube.Request{Verbs: verbs, Resource: k.gvr.GroupResource(), Namespace: k.namespace, Name: k.name}.Explain(err)
}

// get returns the object, from the API server or, within a Watch, from its feed.
func (k feedKey) get(ctx context.Context) (metav1.Object, error) {
	if h := hubOf(ctx); h != nil {
		return h.one(ctx, k)
	}
	object, err := k.getOnce(ctx)
	if err == nil {
		err = kube.Answers(object, k.gvr, k.namespace, k.name)
	}
	return object, k.explain(err, "get")
}

func (k feedKey) getOnce(ctx context.Context) (metav1.Object, error) {
	if k.metadataOnly() {
		return k.client.Metadata.Resource(k.gvr).Get(ctx, k.name, metav1.GetOptions{})
	}
	return k.client.Dynamic.Resource(k.gvr).Namespace(k.namespace).Get(ctx, k.name, metav1.GetOptions{})
}

// getAll returns the objects of the namespace for which wanted is true.
func (k feedKey) getAll(ctx context.Context, wanted func(metav1.Object) bool) (objects []metav1.Object, err error) {
	if h := hubOf(ctx); h != nil {
		list, err := h.feed(k).read(ctx)
		return slices.DeleteFunc(list, func(o metav1.Object) bool { return !wanted(o) }), err
	}
	list, _, err := k.list(withBudget(ctx), metav1.ListOptions{}, wanted)
	for _, o := range list {
		objects = append(objects, o.Object)
	}
	return objects, k.explain(err, "list")
}

// one returns the object of a feed or, if there is none, the error that the API
// server would return.
func (h *hub) one(ctx context.Context, key feedKey) (metav1.Object, error) {
	objects, err := h.feed(key).read(ctx)
	if err == nil && len(objects) == 0 {
		err = apierrors.NewNotFound(key.gvr.GroupResource(), key.name)
	}
	if err != nil {
		return nil, err
	}
	return objects[0], nil
}

// pages reads a list by pages of options.Limit objects, or of half as many, and so on, as
// long as that is too much for one answer, which a few large objects may be. The function
// reads one page, and returns the token of the next. If the list expires, or its first page
// is too large, it begins anew, with options.Continue empty.
func pages(options metav1.ListOptions, read func(metav1.ListOptions) (next string, err error)) error {
	for limit := options.Limit; ; {
		next, err := read(options)
		switch {
		case oversized(err) && options.Limit > 1:
			options.Limit /= 2
			continue
		case apierrors.IsResourceExpired(err) && options.Continue != "":
			next = ""
		case err != nil || next == "":
			return err
		}
		options.Continue, options.Limit = next, min(2*options.Limit, limit)
	}
}

// list reads page by page, and returns the parts that sources read of the wanted
// objects, and the version of the list.
func (k feedKey) list(ctx context.Context, options metav1.ListOptions, wanted func(metav1.Object) bool) (objects []held, version string, err error) {
	options.Limit = pageSize
	count, kept := 0, 0
	err = pages(options, func(options metav1.ListOptions) (string, error) {
		if count++; count > maxPages {
			return "", errManyPages
		}
		if options.Continue == "" {
			objects, kept = nil, 0
		}
		page, more, err := k.page(ctx, options)
		if err != nil {
			return "", err
		}
		for _, o := range page {
			if err := kube.Answers(o, k.gvr, k.namespace, k.name); err != nil {
				return "", err
			}
			if !wanted(o) {
				continue
			}
			held := slim(o)
			if kept += held.weight; kept > maxKept {
				return "", errKept
			}
			objects = append(objects, held)
		}
		version = more.ResourceVersion
		return more.Continue, nil
	})
	return objects, version, err
}

// held is the part of an object that sources read, and its weight.
type held struct {
	metav1.Object
	weight int
}

func slim(o metav1.Object) held {
	object, ok := o.(*unstructured.Unstructured)
	if !ok {
		o.SetManagedFields(nil)
		return held{o, 0} // one Node, or one definition
	}
	kept := map[string]any{"metadata": map[string]any{"name": object.GetName(), "resourceVersion": object.GetResourceVersion()}}
	for _, part := range []string{"data", "spec"} {
		if value, ok := object.Object[part]; ok {
			kept[part] = value
		}
	}
	return held{&unstructured.Unstructured{Object: kept}, weight(kept)}
}

func (k feedKey) page(ctx context.Context, options metav1.ListOptions) (objects []metav1.Object, meta metav1.ListMeta, err error) {
	if k.metadataOnly() {
		list, err := k.client.Metadata.Resource(k.gvr).List(ctx, options)
		if err != nil {
			return nil, meta, err
		}
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
		return objects, list.ListMeta, nil
	}
	list, err := k.client.Dynamic.Resource(k.gvr).Namespace(k.namespace).List(ctx, options)
	if err == nil && !strings.HasSuffix(list.GetKind(), "List") {
		err = fmt.Errorf("the answer is a %.300q instead of a list", list.GetKind())
	}
	if err != nil {
		return nil, meta, err
	}
	for i := range list.Items {
		objects = append(objects, &list.Items[i])
	}
	return objects, metav1.ListMeta{Continue: list.GetContinue(), ResourceVersion: list.GetResourceVersion()}, nil
}

func (k feedKey) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if k.metadataOnly() {
		return k.client.Metadata.Resource(k.gvr).Watch(ctx, options)
	}
	return k.client.Dynamic.Resource(k.gvr).Namespace(k.namespace).Watch(ctx, options)
}
