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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/internal/kube"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

var errNoClient = errors.New("no client given: make one with Connection.Client")

// reads returns an error if the client is nil or the zero value.
func (c *Client) reads() error {
	if c == nil || c.Dynamic == nil {
		return errNoClient
	}
	return nil
}

// ConfigMap returns the source that reads the data of one ConfigMap, without its
// binaryData. If the ConfigMap does not exist, the error matches
// configresolve.ErrMissing.
func (c *Client) ConfigMap(namespace, name string) configresolve.Source {
	ref := configresolve.Ref{Kind: "config-map", Namespace: namespace, Name: name}
	return configresolve.Source{Ref: ref, Read: func(ctx context.Context) ([]configresolve.Layer, error) {
		data, err := c.configMap(ctx, namespace, name)
		if err != nil {
			return nil, err
		}
		return []configresolve.Layer{{Ref: ref, Values: data, Empty: "it has no data (binaryData is not read)"}}, nil
	}}
}

func (c *Client) configMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	if err := c.reads(); err != nil {
		return nil, err
	}
	if namespace == "" || name == "" {
		return nil, errors.New("needs a namespace and a name")
	}
	object, err := feedKey{c, configMaps, namespace, name}.get(ctx)
	if apierrors.IsNotFound(err) && !kube.NotServed(err) {
		return nil, fmt.Errorf("ConfigMap %s/%s: %w", namespace, name, configresolve.ErrMissing)
	}
	if err != nil {
		return nil, err
	}
	data, err := stringMap(object, "data")
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s: %w", namespace, name, err)
	}
	return data, nil
}

// stringMap returns the map of strings at path in o, or nil if there is none.
func stringMap(o metav1.Object, path ...string) (map[string]string, error) {
	value, err := field(o, path...)
	if err != nil || value == nil {
		return nil, err
	}
	entries, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is a %T, not a map", strings.Join(path, "."), value)
	}
	values := make(map[string]string, len(entries))
	for key, value := range entries {
		text, ok := value.(string)
		if !ok {
			return nil, fmt.Errorf("%s: the value of %.253q is a %T, not a string", strings.Join(path, "."), key, value)
		}
		values[key] = text
	}
	return values, nil
}

// field returns the value at path in o, or nil if there is none. Its errors do
// not quote the content, which may be anything and of any length.
func field(o metav1.Object, path ...string) (any, error) {
	object, whole := o.(*unstructured.Unstructured)
	if !whole {
		return nil, errors.New("the answer is no whole object")
	}
	value, _, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	if err != nil {
		return nil, fmt.Errorf("%s cannot exist: its parent is not a map", strings.Join(path, "."))
	}
	return value, nil
}
