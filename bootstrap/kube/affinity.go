// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
)

// term is a NodeSelectorTerm of k8s.io/api/core/v1, whose package would be linked for
// nothing else.
type term struct {
	MatchExpressions []expression `json:"matchExpressions"`
	MatchFields      []expression `json:"matchFields"`
}

type expression struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

// operators are those of node selectors (k8s.io/api/core/v1), as labels have them.
var operators = map[string]selection.Operator{
	"In": selection.In, "NotIn": selection.NotIn, "Exists": selection.Exists, "DoesNotExist": selection.DoesNotExist,
	"Gt": selection.GreaterThan, "Lt": selection.LessThan,
}

// affine reports whether a pod's required affinity allows the node: whether one of its
// terms holds.
func affine(pod map[string]any, node *unstructured.Unstructured) (bool, error) {
	required, found, err := unstructured.NestedMap(pod, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
	if err != nil {
		return false, errors.New("its node affinity is invalid")
	}
	if !found {
		return true, nil
	}
	var selector struct {
		Terms []term `json:"nodeSelectorTerms"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(required, &selector); err != nil {
		return false, fmt.Errorf("its node affinity: %w", err)
	}
	for _, t := range selector.Terms {
		holds, err := t.holds(node)
		if err != nil || holds {
			return holds, err
		}
	}
	return false, nil
}

// holds reports whether all expressions of the term hold. One without expressions holds
// nowhere.
func (t term) holds(node *unstructured.Unstructured) (bool, error) {
	if len(t.MatchExpressions)+len(t.MatchFields) == 0 {
		return false, nil
	}
	byLabels, err := hold(t.MatchExpressions, node.GetLabels())
	if err != nil || !byLabels {
		return false, err
	}
	return hold(t.MatchFields, labels.Set{metav1.ObjectNameField: node.GetName()})
}

func hold(expressions []expression, values labels.Set) (bool, error) {
	for _, e := range expressions {
		requirement, err := labels.NewRequirement(e.Key, operators[e.Operator], e.Values)
		if err != nil {
			return false, fmt.Errorf("its node affinity: %w", err)
		}
		if !requirement.Matches(values) {
			return false, nil
		}
	}
	return true, nil
}
