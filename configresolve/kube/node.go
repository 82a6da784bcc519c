// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/internal/kube"
	"github.com/slipway-dev/slipway/internal/once"
)

var nodes = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}

// Node returns the source that reads those labels and annotations of a Node whose names
// have the form PREFIX/KEY, of which an agent's preset, such as [Cilium], has the prefix. An
// annotation overrides a label. If the Node does not exist, the error matches
// configresolve.ErrMissing. A Node that another source of the same resolution has read is
// not read again.
func (c *Client) Node(name, prefix string) configresolve.Source {
	ref := configresolve.Ref{Kind: "node", Name: name}
	return configresolve.Source{Ref: ref, Read: func(ctx context.Context) ([]configresolve.Layer, error) {
		if prefix == "" {
			return nil, errors.New("needs the prefix of the keys of its labels and annotations")
		}
		meta, err := c.node(ctx, name)
		if err != nil {
			return nil, err
		}
		return []configresolve.Layer{
			{Ref: ref, Part: "labels", Values: pick(meta.Labels, prefix)},
			{Ref: ref, Part: "annotations", Values: pick(meta.Annotations, prefix)},
		}, nil
	}}
}

func pick(from map[string]string, prefix string) map[string]string {
	values := map[string]string{}
	for name, value := range from {
		if key, ok := strings.CutPrefix(name, prefix+"/"); ok {
			values[key] = value
		}
	}
	return values
}

func (c *Client) node(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	if c == nil || c.Metadata == nil {
		return nil, errNoClient
	}
	if name == "" {
		return nil, errors.New("no node name given")
	}
	key := feedKey{client: c, gvr: nodes, name: name}
	return once.Read(ctx, key, func(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
		object, err := key.get(ctx)
		switch {
		case apierrors.IsNotFound(err) && !kube.NotServed(err):
			return nil, fmt.Errorf("Node %s: %w", name, configresolve.ErrMissing)
		case err != nil:
			return nil, err
		}
		return object.(*metav1.PartialObjectMetadata), nil
	})
}

// nodesPage is the number of Nodes read at once: of usual ones, with 8 KiB of metadata, it
// is a few hundred KiB.
const nodesPage = 50

// EachNode reads the metadata of all Nodes that the label selector matches, page by page, and
// calls visit for each. One with more entries than one answer may have, which a node can
// write itself, has nothing but its name, and err says so. If the list expires, it begins
// anew with the first.
func (c *Client) EachNode(ctx context.Context, selector string, visit func(node *metav1.PartialObjectMetadata, err error)) error {
	if c == nil || c.Metadata == nil {
		return errNoClient
	}
	key := feedKey{client: c, gvr: nodes}
	return key.explain(pages(metav1.ListOptions{LabelSelector: selector, Limit: nodesPage}, func(options metav1.ListOptions) (string, error) {
		page, more, err := key.page(ctx, options)
		if large := new(tooMany); options.Limit == 1 && errors.As(err, &large) {
			name, next, err := large.only()
			if err == nil {
				visit(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}, large)
			}
			return next, err
		}
		for _, node := range page {
			visit(node.(*metav1.PartialObjectMetadata), nil)
		}
		return more.Continue, err
	}), "list")
}
