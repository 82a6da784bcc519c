// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/kube"
)

var accessReviews = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews"}

// Rule is what a plan does in the cluster.
type Rule struct {
	Verb      string
	Group     string // of the API; empty: the core's
	Resource  string // its plural, and what is meant of it, such as "nodes" or "nodes/status"
	Namespace string // empty: all of them, or the resource has none
	Name      string // of the object; empty: any
}

// text is the rule as kubectl auth can-i writes it, "patch nodes/status me".
func (r Rule) text() string {
	text := r.Verb + " " + r.Resource
	if r.Name != "" {
		text += " " + r.Name
	}
	if r.Namespace != "" {
		text += " in " + r.Namespace
	}
	return text
}

// Access asks the API server whether it allows what a plan will do, such as the rules of
// [Node.Rules] and [Reporter.Rules], one request for each different rule (SelfSubjectAccessReview, which the
// default rules let each account ask). It returns a check for package bootstrap/preflight:
// each rule that is denied is a finding with the code "kube.forbidden", and certain to fail;
// the check's error is of rules that could not be asked for. An admission policy may deny
// what is allowed here.
func Access(client dynamic.Interface, rules ...Rule) func(context.Context) (findings []error, err error) {
	return func(ctx context.Context) (findings []error, err error) {
		if client == nil {
			return nil, errNoClient
		}
		for i, r := range rules {
			if slices.Contains(rules[:i], r) {
				continue
			}
			denied, err := r.denied(ctx, client)
			switch {
			case err != nil:
				return findings, err // as for the others
			case denied != nil:
				findings = append(findings, denied)
			}
		}
		return findings, nil
	}
}

// denied returns why the rule is; nil: it is allowed.
func (r Rule) denied(ctx context.Context, client dynamic.Interface) (denied, err error) {
	if r.Verb == "" || r.Resource == "" {
		return nil, fmt.Errorf("a rule needs a verb and a resource: %+v", r)
	}
	resource, subresource, _ := strings.Cut(r.Resource, "/")
	answer, err := client.Resource(accessReviews).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": map[string]any{
			"verb": r.Verb, "group": r.Group, "resource": resource, "subresource": subresource, "namespace": r.Namespace, "name": r.Name,
		}},
	}}, metav1.CreateOptions{})
	if err != nil {
		return nil, explain(err, "create", accessReviews, "", "", "")
	}
	allowed, found, err := unstructured.NestedBool(answer.Object, "status", "allowed")
	switch {
	case err != nil || !found:
		return nil, errors.Join(errors.New("the API server's answer to a SelfSubjectAccessReview does not say whether it is allowed"), err)
	case allowed:
		return nil, nil
	}
	grant := kube.Request{Verbs: []string{r.Verb}, Resource: schema.GroupResource{Group: r.Group, Resource: resource}, Subresource: subresource, Namespace: r.Namespace, Name: r.Name}.Grant()
	why, _, _ := unstructured.NestedString(answer.Object, "status", "reason") // often empty
	return bootstrap.Certain(code.New(code.KubeForbidden, strings.TrimSuffix(fmt.Sprintf("the API server does not allow to %s, which the plan needs (grant it by a %s): %s", r.text(), grant, why), ": "))), nil
}

// Rules lists what the step does in the cluster.
func (n Node) Rules() []Rule {
	rules := []Rule{{Verb: "get", Resource: "nodes", Name: n.Name}}
	if n.Taint != "" || len(n.Annotations) > 0 {
		rules = append(rules, Rule{Verb: "patch", Resource: "nodes", Name: n.Name})
	}
	if n.Reason != "" {
		rules = append(rules, Rule{Verb: "patch", Resource: "nodes/status", Name: n.Name})
	}
	return rules
}
