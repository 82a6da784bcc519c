// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/configresolve"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

var errNoClient = errors.New("no client given")

// ConfigMap is the source of the data of one ConfigMap; its binaryData does not
// count. One that does not exist matches configresolve.ErrMissing.
type ConfigMap struct {
	Client          *Client
	Namespace, Name string
}

// Ref names the source config-map:NAMESPACE/NAME.
func (s ConfigMap) Ref() configresolve.Ref {
	return configresolve.Ref{Kind: configresolve.KindConfigMap, Namespace: s.Namespace, Name: s.Name}
}

// Remote makes it one that is read beside the others: see configresolve.Remote.
func (ConfigMap) Remote() {}

// Read gets the ConfigMap.
func (s ConfigMap) Read(ctx context.Context) ([]configresolve.Layer, error) {
	if s.Client == nil || s.Namespace == "" || s.Name == "" {
		return nil, errors.New("needs a client, a namespace and a name")
	}
	object, err := s.Client.get(ctx, configMaps, s.Namespace, s.Name)
	if apierrors.IsNotFound(err) && !notServed(err) {
		return nil, fmt.Errorf("ConfigMap %s/%s: %w", s.Namespace, s.Name, configresolve.ErrMissing)
	}
	if err != nil {
		return nil, err
	}
	data, err := stringMap(*object, "data")
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s: %w", s.Namespace, s.Name, err)
	}
	return []configresolve.Layer{{Ref: s.Ref(), Values: data}}, nil
}

// stringMap returns a map of strings in object, nil where there is none.
func stringMap(object unstructured.Unstructured, path ...string) (map[string]string, error) {
	value, _, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	if err != nil || value == nil {
		return nil, err
	}
	values, _, err := unstructured.NestedStringMap(object.Object, path...)
	return values, err
}
