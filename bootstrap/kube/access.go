// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"context"
	"errors"
	"fmt"
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
	Verb        string
	Group       string // of the API; empty: the core's
	Resource    string // its plural
	Subresource string // such as "status"; empty: the object itself
	Namespace   string // empty: all of them, or the resource has none
	Name        string // of the object; empty: any
}

// String returns the rule as kubectl auth can-i writes it, "patch nodes/status me".
func (r Rule) String() string {
	text := r.Verb + " " + r.Resource
	if r.Subresource != "" {
		text += "/" + r.Subresource
	}
	if r.Name != "" {
		text += " " + r.Name
	}
	if r.Namespace != "" {
		text += " in " + r.Namespace
	}
	return text
}

// Access asks the API server whether it allows what a plan will do, one request a rule
// (SelfSubjectAccessReview, which the default rules let each account ask). It is a checker
// for package bootstrap/preflight. What is denied is certain to fail. An admission policy
// may deny what is allowed here.
type Access struct {
	Client dynamic.Interface
	Rules  []Rule // such as those of [Node.Rules] and [Reporter.Rules]
}

// Findings lists the rules that are denied, each an error with the code "kube.forbidden". The
// error is of rules that could not be asked for.
func (a Access) Findings(ctx context.Context) (findings []error, err error) {
	if a.Client == nil {
		return nil, errNoClient
	}
	for _, r := range a.Rules {
		denied, err := a.denied(ctx, r)
		switch {
		case err != nil:
			return findings, err // as for the others
		case denied != nil:
			findings = append(findings, denied)
		}
	}
	return findings, nil
}

// denied returns why the rule is; nil: it is allowed.
func (a Access) denied(ctx context.Context, r Rule) (denied, err error) {
	if r.Verb == "" || r.Resource == "" {
		return nil, fmt.Errorf("a rule needs a verb and a resource: %+v", r)
	}
	answer, err := a.Client.Resource(accessReviews).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": map[string]any{
			"verb": r.Verb, "group": r.Group, "resource": r.Resource, "subresource": r.Subresource, "namespace": r.Namespace, "name": r.Name,
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
	grant := kube.Request{Verbs: []string{r.Verb}, Resource: schema.GroupResource{Group: r.Group, Resource: r.Resource}, Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Name}.Grant()
	why, _, _ := unstructured.NestedString(answer.Object, "status", "reason") // often empty
	return bootstrap.Certain(code.New(code.KubeForbidden, strings.TrimSuffix(fmt.Sprintf("the API server does not allow to %s, which the plan needs (grant it by a %s): %s", r, grant, why), ": "))), nil
}

// Rules lists what the step does in the cluster.
func (n Node) Rules() []Rule {
	rules := []Rule{{Verb: "get", Resource: "nodes", Name: n.Name}}
	if n.Taint != "" || len(n.Annotations) > 0 {
		rules = append(rules, Rule{Verb: "patch", Resource: "nodes", Name: n.Name})
	}
	if n.Reason != "" {
		rules = append(rules, Rule{Verb: "patch", Resource: "nodes", Subresource: "status", Name: n.Name})
	}
	return rules
}
