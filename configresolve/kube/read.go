// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/slipway-dev/slipway/internal/kube"
)

const pageSize = 250

// get returns one object, from the API server or, within a Watch, from its feeds.
func (c *Client) get(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	if h := hubOf(ctx); h != nil {
		o, err := h.one(ctx, feedKey{c, gvr, namespace, name})
		object, _ := o.(*unstructured.Unstructured)
		return object, err
	}
	object, err := c.Dynamic.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		err = kube.Answers(object, gvr, namespace, name)
	}
	return object, request{[]string{"get"}, gvr.GroupResource(), namespace, name}.explain(err)
}

// getMeta returns the metadata of an object of the cluster.
func (c *Client) getMeta(ctx context.Context, gvr schema.GroupVersionResource, name string) (*metav1.PartialObjectMetadata, error) {
	if h := hubOf(ctx); h != nil {
		o, err := h.one(ctx, feedKey{client: c, gvr: gvr, name: name})
		object, _ := o.(*metav1.PartialObjectMetadata)
		return object, err
	}
	object, err := c.Metadata.Resource(gvr).Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		err = kube.Answers(object, gvr, "", name)
	}
	return object, request{[]string{"get"}, gvr.GroupResource(), "", name}.explain(err)
}

// getAll returns the objects of a namespace for which wanted is true.
func (c *Client) getAll(ctx context.Context, gvr schema.GroupVersionResource, namespace string, wanted func(metav1.Object) bool) ([]unstructured.Unstructured, error) {
	var objects []unstructured.Unstructured
	add := func(o metav1.Object) {
		if object, ok := o.(*unstructured.Unstructured); ok {
			objects = append(objects, *object)
		}
	}
	key := feedKey{client: c, gvr: gvr, namespace: namespace}
	if h := hubOf(ctx); h != nil {
		list, err := h.feed(key).read(ctx)
		for _, o := range list {
			if wanted(o) {
				add(o)
			}
		}
		return objects, err
	}
	list, _, err := c.list(withBudget(ctx), key, metav1.ListOptions{}, wanted)
	for _, o := range list {
		add(o.Object)
	}
	return objects, request{[]string{"list"}, gvr.GroupResource(), namespace, ""}.explain(err)
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

// metadataOnly reports whether only the metadata of the objects is read.
func (k feedKey) metadataOnly() bool { return k.gvr == nodes || k.gvr == definitions }

// Pages reads a list by pages of options.Limit objects, or of half as many, and so on, as
// long as that is too much for one answer, which a few large objects may be. The function
// reads one page, and returns the token of the next. If the list expires, or its first page
// is too large, it begins anew, with options.Continue empty.
func Pages(options metav1.ListOptions, read func(metav1.ListOptions) (next string, err error)) error {
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
func (c *Client) list(ctx context.Context, key feedKey, options metav1.ListOptions, wanted func(metav1.Object) bool) (objects []held, version string, err error) {
	options.Limit = pageSize
	pages, kept := 0, 0
	err = Pages(options, func(options metav1.ListOptions) (string, error) {
		if pages++; pages > maxPages {
			return "", errManyPages
		}
		if options.Continue == "" {
			objects, kept = nil, 0
		}
		page, more, err := c.page(ctx, key, options)
		if err != nil {
			return "", err
		}
		for _, o := range page {
			if err := kube.Answers(o, key.gvr, key.namespace, key.name); err != nil {
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

func (c *Client) page(ctx context.Context, key feedKey, options metav1.ListOptions) (objects []metav1.Object, meta metav1.ListMeta, err error) {
	if key.metadataOnly() {
		list, err := c.Metadata.Resource(key.gvr).List(ctx, options)
		if err != nil {
			return nil, meta, err
		}
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
		return objects, list.ListMeta, nil
	}
	list, err := c.Dynamic.Resource(key.gvr).Namespace(key.namespace).List(ctx, options)
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

func (c *Client) watch(ctx context.Context, key feedKey, options metav1.ListOptions) (watch.Interface, error) {
	if key.metadataOnly() {
		return c.Metadata.Resource(key.gvr).Watch(ctx, options)
	}
	return c.Dynamic.Resource(key.gvr).Namespace(key.namespace).Watch(ctx, options)
}
