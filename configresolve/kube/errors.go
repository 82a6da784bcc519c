// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/internal/code"
)

// request is one read, as described in errors and in RBAC rules.
type request struct {
	verbs     []string // all of which it needs
	resource  schema.GroupResource
	namespace string // empty: of the cluster
	name      string // empty: a list
}

func (r request) String() string {
	object, verbs := r.resource.String(), strings.Join(r.verbs, " and ")
	switch {
	case r.namespace != "" && r.name != "":
		return verbs + " " + object + " " + r.namespace + "/" + r.name
	case r.namespace != "":
		return verbs + " " + object + " in namespace " + r.namespace
	}
	return verbs + " " + object + " " + r.name
}

// explain names the request, and the rule that would grant it.
func (r request) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return code.Errorf(code.KubeForbidden, "%s: %w (grant it by a %s)", r, err, r.rule())
	case apierrors.IsUnauthorized(err):
		return code.Errorf(code.KubeUnauthorized, "%s: %w (the API server does not accept the credentials: is the ServiceAccount's token, or the kubeconfig's, of this cluster and not expired?)", r, err)
	case errors.As(err, new(*url.Error)) && !errors.Is(err, context.Canceled):
		return code.Errorf(code.KubeUnavailable, "%s: %w", r, err)
	}
	return fmt.Errorf("%s: %w", r, err)
}

// rule is the RBAC rule that grants r and no more.
func (r request) rule() string {
	role := "ClusterRole"
	if r.namespace != "" {
		role = "Role in namespace " + r.namespace
	}
	names := ""
	if r.name != "" {
		names = fmt.Sprintf(", resourceNames: [%q]", r.name)
	}
	var verbs []string
	for _, v := range r.verbs {
		verbs = append(verbs, strconv.Quote(v))
	}
	return fmt.Sprintf("%s with the rule {apiGroups: [%q], resources: [%q]%s, verbs: [%s]}", role, r.resource.Group, r.resource.Resource, names, strings.Join(verbs, ", "))
}

// notServed reports whether the answer was 404 for the resource rather than an
// object: the server has no such resource or version, or is no API server.
func notServed(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && unexpected(status.Status().Details)
}

// unexpected reports whether the 404 carried no Status of an API server.
func unexpected(details *metav1.StatusDetails) bool {
	if details == nil {
		return true
	}
	for _, cause := range details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse {
			return true
		}
	}
	return false
}
