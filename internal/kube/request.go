// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/internal/code"
)

// Request is a request to an API server, as described in errors and in RBAC rules.
type Request struct {
	Verbs       []string // all of which it needs
	Resource    schema.GroupResource
	Subresource string // empty: the object itself
	Namespace   string // empty: of the cluster
	Name        string // empty: a list
}

// String describes the request in an error.
func (r Request) String() string {
	text := strings.Join(r.Verbs, " and ") + " " + r.below(r.Resource.String())
	switch {
	case r.Namespace != "" && r.Name != "":
		return text + " " + r.Namespace + "/" + r.Name
	case r.Namespace != "":
		return text + " in namespace " + r.Namespace
	}
	return strings.TrimSuffix(text+" "+r.Name, " ")
}

func (r Request) below(resource string) string {
	if r.Subresource == "" {
		return resource
	}
	return resource + "/" + r.Subresource
}

// Explain names the request in its error, and the rule that would grant it.
func (r Request) Explain(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return code.Errorf(code.KubeForbidden, "%s: %w (grant it by a %s%s)", r, err, r.Grant(), r.admission())
	case apierrors.IsUnauthorized(err):
		return code.Errorf(code.KubeUnauthorized, "%s: %w (the API server does not accept the credentials: is the ServiceAccount's token, or the kubeconfig's, of this cluster and not expired?)", r, err)
	case errors.As(err, new(*url.Error)) && !errors.Is(err, context.Canceled):
		return code.Errorf(code.KubeUnavailable, "%s: %w", r, err)
	}
	return fmt.Errorf("%s: %w", r, err)
}

// admission mentions what may deny a write besides RBAC.
func (r Request) admission() string {
	if slices.Contains([]string{"get", "list", "watch"}, r.Verbs[0]) {
		return ""
	}
	return ", or see which admission policy denies it"
}

// Grant is the role with the RBAC rule that grants r and no more. What is created has no
// name yet.
func (r Request) Grant() string {
	role := "ClusterRole"
	if r.Namespace != "" {
		role = "Role in namespace " + r.Namespace
	}
	names := ""
	if r.Name != "" && !slices.Contains(r.Verbs, "create") {
		names = fmt.Sprintf(", resourceNames: [%q]", r.Name)
	}
	return fmt.Sprintf(`%s with the rule {apiGroups: [%q], resources: [%q]%s, verbs: ["%s"]}`,
		role, r.Resource.Group, r.below(r.Resource.Resource), names, strings.Join(r.Verbs, `", "`))
}
