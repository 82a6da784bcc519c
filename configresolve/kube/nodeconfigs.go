// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"context"
	"errors"
	"fmt"
	"sort"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/internal/kube"
	"github.com/slipway-dev/slipway/internal/once"
)

var (
	ciliumNodeConfigs = schema.GroupResource{Group: "cilium.io", Resource: "ciliumnodeconfigs"}
	errVersions       = errors.New("needs the group, versions and plural of a custom resource")
)

// NodeConfigs returns the source that reads the node configs of a namespace: objects
// with spec.nodeSelector and spec.defaults, a map of keys to values.
//
// It uses every object whose selector matches the labels of the Node nodeName: an absent
// selector matches no Node, an empty one matches every Node. The objects are sorted by name,
// bytewise, and a later one overrides an earlier one. Objects without defaults are skipped.
// [Client.Source] uses a named object instead, whatever its selector.
//
// If the cluster does not have the custom resource, or not the named object, there are no
// keys, and that is not an error. An invalid selector is an error, and so is a missing Node
// if a selector needs its labels; it is read only then.
//
// Of the versions of the custom resource, the first that the cluster serves is read. One is
// required; an agent's preset, such as [Cilium], has them. The source's kind is
// cilium-node-config, or the full name of another agent's resource, PLURAL.GROUP.
func (c *Client) NodeConfigs(namespace, nodeName string, versions ...schema.GroupVersionResource) configresolve.Source {
	return nodeConfigs{client: c, namespace: namespace, nodeName: nodeName, versions: versions}.source()
}

type nodeConfigs struct {
	client    *Client
	namespace string
	name      string // empty: those that select the node
	nodeName  string
	versions  []schema.GroupVersionResource
}

func (s nodeConfigs) source() configresolve.Source {
	return configresolve.Source{Ref: s.ref(s.name), Read: s.layers}
}

// resource names the custom resource without its version.
func (s nodeConfigs) resource() (r schema.GroupResource, err error) {
	for i, v := range s.versions {
		if i > 0 && v.GroupResource() != r {
			return r, errVersions
		}
		if r = v.GroupResource(); r.Group == "" || r.Resource == "" || v.Version == "" {
			return r, errVersions
		}
	}
	if len(s.versions) == 0 {
		return r, errVersions
	}
	return r, nil
}

// ref identifies the source, or one of its objects.
func (s nodeConfigs) ref(name string) configresolve.Ref {
	r, err := s.resource()
	kind := r.String()
	switch {
	case err != nil:
		kind = "node-config"
	case r == ciliumNodeConfigs:
		kind = "cilium-node-config"
	}
	return configresolve.Ref{Kind: kind, Namespace: s.namespace, Name: name}
}

// layers reads the objects, and the Node only if a selector needs its labels.
func (s nodeConfigs) layers(ctx context.Context) ([]configresolve.Layer, error) {
	if err := s.client.reads(); err != nil {
		return nil, err
	}
	if s.namespace == "" {
		return nil, errors.New("needs a namespace")
	}
	resource, err := s.resource()
	if err != nil {
		return nil, err
	}
	ctx = once.WithinResolution(ctx) // the Node is read once
	objects, err := s.objects(ctx)
	if err != nil {
		return nil, err
	}
	sort.Slice(objects, func(i, j int) bool { return objects[i].GetName() < objects[j].GetName() })
	var layers []configresolve.Layer
	for _, object := range objects {
		layer, ok, err := s.layer(ctx, object)
		if err != nil {
			return nil, fmt.Errorf("%s %s/%s: %w", resource.Resource, s.namespace, object.GetName(), err)
		}
		if ok {
			layers = append(layers, layer)
		}
	}
	return layers, nil
}

// counts reports whether an object of a list has keys for the node, or is invalid.
// The others, perhaps one for each node, are not kept.
func (s nodeConfigs) counts(ctx context.Context, o metav1.Object) bool {
	_, ok, err := s.layer(ctx, o)
	return ok || err != nil
}

// layer returns the keys that object sets, and false if it does not count.
func (s nodeConfigs) layer(ctx context.Context, object metav1.Object) (configresolve.Layer, bool, error) {
	defaults, err := stringMap(object, "spec", "defaults")
	if err != nil || len(defaults) == 0 {
		return configresolve.Layer{}, false, err
	}
	if s.name == "" {
		if selected, err := s.selected(ctx, object); err != nil || !selected {
			return configresolve.Layer{}, false, err
		}
	}
	return configresolve.Layer{Ref: s.ref(object.GetName()), Values: defaults}, true, nil
}

func (s nodeConfigs) selected(ctx context.Context, object metav1.Object) (bool, error) {
	selector, err := selectorOf(object)
	if err != nil || selector == nil {
		return false, err
	}
	if selector.Empty() {
		return true, nil
	}
	node, err := s.client.node(ctx, s.nodeName)
	if errors.Is(err, configresolve.ErrMissing) {
		return false, fmt.Errorf("its selector needs the labels of Node %s, which does not exist", s.nodeName) // an Optional source does not stand for its Node
	}
	if err != nil {
		return false, fmt.Errorf("its selector needs the labels of the node: %w", err)
	}
	return selector.Matches(labels.Set(node.Labels)), nil
}

// selectorOf returns nil if object has no selector.
func selectorOf(object metav1.Object) (labels.Selector, error) {
	value, err := field(object, "spec", "nodeSelector")
	if err != nil || value == nil {
		return nil, err
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("spec.nodeSelector is not a map")
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector); err != nil {
		return nil, fmt.Errorf("spec.nodeSelector: %w", err)
	}
	parsed, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return nil, fmt.Errorf("spec.nodeSelector: %w", err)
	}
	return parsed, nil
}

// listKey is the key under which the sources of a resolution share a list or an
// object.
type listKey struct {
	feedKey
	nodeName string
}

// objects reads the first version that is served.
func (s nodeConfigs) objects(ctx context.Context) ([]metav1.Object, error) {
	key := listKey{feedKey{s.client, s.versions[0], s.namespace, s.name}, s.nodeName}
	return once.Read(ctx, key, func(ctx context.Context) ([]metav1.Object, error) {
		for _, version := range s.versions {
			objects, err := s.read(ctx, version)
			if s.name == "" && apierrors.IsNotFound(err) || kube.NotServed(err) {
				continue
			}
			return objects, err
		}
		return nil, nil
	})
}

func (s nodeConfigs) read(ctx context.Context, gvr schema.GroupVersionResource) ([]metav1.Object, error) {
	key := feedKey{s.client, gvr, s.namespace, s.name}
	if s.name == "" {
		return key.getAll(ctx, func(o metav1.Object) bool { return s.counts(ctx, o) })
	}
	object, err := key.get(ctx)
	if apierrors.IsNotFound(err) && !kube.NotServed(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []metav1.Object{object}, nil
}
