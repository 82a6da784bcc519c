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

// NodeConfigs is the source that reads the node configs of a namespace: objects
// with spec.nodeSelector and spec.defaults, a map of keys to values.
//
// Without a Name, it uses every object whose selector matches the labels of the
// Node: an absent selector matches no Node, an empty one matches every Node. The
// objects are sorted by name, bytewise, and a later one overrides an earlier one.
// With a Name, it uses that object, whatever its selector. Objects without defaults
// are skipped.
//
// If the cluster does not have the custom resource, or no object has that Name,
// there are no keys, and that is not an error. An invalid selector is an error, and
// so is a missing Node if a selector needs its labels.
type NodeConfigs struct {
	Client    *Client
	Namespace string
	Name      string // empty: those that select the node
	NodeName  string

	// Versions are those of the custom resource, of which the first that the cluster serves
	// is read. One is required; an agent's preset, such as [Cilium], has them.
	Versions []schema.GroupVersionResource
}

// resource names the custom resource without its version.
func (s NodeConfigs) resource() (r schema.GroupResource, err error) {
	for i, v := range s.Versions {
		if i > 0 && v.GroupResource() != r {
			return r, errVersions
		}
		if r = v.GroupResource(); r.Group == "" || r.Resource == "" || v.Version == "" {
			return r, errVersions
		}
	}
	if len(s.Versions) == 0 {
		return r, errVersions
	}
	return r, nil
}

// Ref identifies the source as KIND:NAMESPACE, followed by /NAME if it has one,
// where KIND is cilium-node-config, or the full name of another agent's resource,
// PLURAL.GROUP. The layers identify each object in the same way.
func (s NodeConfigs) Ref() configresolve.Ref { return s.ref(s.Name) }

func (s NodeConfigs) ref(name string) configresolve.Ref {
	r, err := s.resource()
	kind := r.String()
	switch {
	case err != nil:
		kind = "node-config"
	case r == ciliumNodeConfigs:
		kind = configresolve.KindNodeConfig
	}
	return configresolve.Ref{Kind: kind, Namespace: s.Namespace, Name: name}
}

// Read reads the objects, and the Node only if a selector needs its labels.
func (s NodeConfigs) Read(ctx context.Context) ([]configresolve.Layer, error) {
	if err := s.Client.reads(); err != nil {
		return nil, err
	}
	if s.Namespace == "" {
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
			return nil, fmt.Errorf("%s %s/%s: %w", resource.Resource, s.Namespace, object.GetName(), err)
		}
		if ok {
			layers = append(layers, layer)
		}
	}
	return layers, nil
}

// counts reports whether an object of a list has keys for the node, or is invalid.
// The others, perhaps one for each node, are not kept.
func (s NodeConfigs) counts(ctx context.Context, o metav1.Object) bool {
	_, ok, err := s.layer(ctx, o)
	return ok || err != nil
}

// layer returns the keys that object sets, and false if it does not count.
func (s NodeConfigs) layer(ctx context.Context, object metav1.Object) (configresolve.Layer, bool, error) {
	defaults, err := stringMap(object, "spec", "defaults")
	if err != nil || len(defaults) == 0 {
		return configresolve.Layer{}, false, err
	}
	if s.Name == "" {
		if selected, err := s.selected(ctx, object); err != nil || !selected {
			return configresolve.Layer{}, false, err
		}
	}
	return configresolve.Layer{Ref: s.ref(object.GetName()), Values: defaults}, true, nil
}

func (s NodeConfigs) selected(ctx context.Context, object metav1.Object) (bool, error) {
	selector, err := selectorOf(object)
	if err != nil || selector == nil {
		return false, err
	}
	if selector.Empty() {
		return true, nil
	}
	node, err := s.Client.node(ctx, s.NodeName)
	if errors.Is(err, configresolve.ErrMissing) {
		return false, fmt.Errorf("its selector needs the labels of Node %s, which does not exist", s.NodeName) // an Optional source does not stand for its Node
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
func (s NodeConfigs) objects(ctx context.Context) ([]metav1.Object, error) {
	key := listKey{feedKey{s.Client, s.Versions[0], s.Namespace, s.Name}, s.NodeName}
	return once.Read(ctx, key, func(ctx context.Context) ([]metav1.Object, error) {
		for _, version := range s.Versions {
			objects, err := s.read(ctx, version)
			if s.Name == "" && apierrors.IsNotFound(err) || kube.NotServed(err) {
				continue
			}
			return objects, err
		}
		return nil, nil
	})
}

func (s NodeConfigs) read(ctx context.Context, gvr schema.GroupVersionResource) ([]metav1.Object, error) {
	key := feedKey{s.Client, gvr, s.Namespace, s.Name}
	if s.Name == "" {
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
