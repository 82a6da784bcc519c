// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

const pageSize = 500

// get returns one object, from the API server or, within a Watch, from its feeds.
func (c *Client) get(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	if h := hubOf(ctx); h != nil {
		o, err := h.one(ctx, feedKey{c, gvr, namespace, name})
		object, _ := o.(*unstructured.Unstructured)
		return object, err
	}
	object, err := c.Dynamic.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
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
	return object, request{[]string{"get"}, gvr.GroupResource(), "", name}.explain(err)
}

// getAll returns the objects of a namespace.
func (c *Client) getAll(ctx context.Context, gvr schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error) {
	var list []metav1.Object
	var err error
	if h := hubOf(ctx); h != nil {
		list, err = h.feed(feedKey{client: c, gvr: gvr, namespace: namespace}).read(ctx)
	} else {
		list, _, err = c.list(withBudget(ctx), feedKey{client: c, gvr: gvr, namespace: namespace}, metav1.ListOptions{})
		err = request{[]string{"list"}, gvr.GroupResource(), namespace, ""}.explain(err)
	}
	var objects []unstructured.Unstructured
	for _, o := range list {
		if object, ok := o.(*unstructured.Unstructured); ok {
			objects = append(objects, *object)
		}
	}
	return objects, err
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

// list reads page by page, and returns the version of the whole. If the list
// expires between two pages, it is read again in one piece, which cannot expire.
func (c *Client) list(ctx context.Context, key feedKey, options metav1.ListOptions) (objects []metav1.Object, version string, err error) {
	options.Limit = pageSize
	for range maxPages {
		page, more, err := c.page(ctx, key, options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" {
			objects, options.Limit, options.Continue = nil, 0, ""
			continue
		}
		if err != nil {
			return nil, "", err
		}
		objects = append(objects, page...)
		if options.Continue = more.Continue; options.Continue == "" {
			return objects, more.ResourceVersion, nil
		}
	}
	return nil, "", errManyPages
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
