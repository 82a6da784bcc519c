// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/bootstrap/gate"
	"github.com/slipway-dev/slipway/internal/printable"
)

const (
	askEvery = time.Second
	maxReady = 64 << 10 // bound on the answer of /readyz, which has its checks, a line each
)

// APIServer returns a gate that opens when the API server reports at /readyz that it is
// ready; the default RBAC rules let every client read that. Config is the caller's, for
// example from configresolve/kube.Connection.Config. The gate asks about once a second.
func APIServer(config *rest.Config) gate.Gate {
	return gate.Gate{Name: "the API server", Every: askEvery, Probe: func(ctx context.Context) (string, error) {
		if config == nil {
			return "", errNoClient
		}
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			return "", err
		}
		server, _, err := rest.DefaultServerUrlFor(config)
		if err != nil {
			return "", err
		}
		return readyz(ctx, client, server)
	}}
}

func readyz(ctx context.Context, client *http.Client, server *url.URL) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.JoinPath("/readyz").String(), nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return printable.NoCredentials(err.Error()), nil
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
		return "", nil
	case http.StatusSwitchingProtocols: // what follows ends with no context
		return "it answers " + response.Status, nil
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxReady)) // a part is enough
	return strings.Join(append([]string{"it answers " + response.Status}, failing(string(body))...), ", "), nil
}

// failing lists the failed checks that an unready server names, in lines such as "[-]etcd
// failed: reason withheld".
func failing(body string) (checks []string) {
	const most = 5
	for line := range strings.Lines(body) {
		if check, ok := strings.CutPrefix(line, "[-]"); ok && len(checks) < most {
			checks = append(checks, strings.TrimSpace(check))
		}
	}
	return checks
}

// Established returns a gate that opens when the custom resources are served, that is,
// when their definitions, named PLURAL.GROUP, are established. It needs get on them.
func Established(client dynamic.Interface, names ...string) gate.Gate {
	return gate.Gate{Name: "the custom resources " + strings.Join(names, ", "), Every: askEvery, Probe: func(ctx context.Context) (string, error) {
		var missing []string
		for _, name := range names {
			seen, err := established(ctx, client, name)
			if err != nil {
				return "", err
			}
			if seen != "" {
				missing = append(missing, name+" "+seen)
			}
		}
		return strings.Join(missing, ", "), nil
	}}
}

func established(ctx context.Context, client dynamic.Interface, name string) (seen string, err error) {
	if client == nil {
		return "", errNoClient
	}
	crd, err := get(ctx, client, definitions, "", name)
	switch {
	case apierrors.IsNotFound(err):
		return "is not installed", nil
	case err != nil && final(err):
		return "", explain(err, "get", definitions, "", "", name)
	case err != nil:
		return fmt.Sprintf("cannot be asked for: %v", err), nil
	}
	return notEstablished(crd), nil
}

func notEstablished(crd *unstructured.Unstructured) string {
	if crd.GetDeletionTimestamp() != nil {
		return "is being deleted"
	}
	for _, kind := range []string{"NamesAccepted", "Established"} {
		if c := condition(crd, kind); c["status"] != "True" {
			reason, _ := c["message"].(string) // the reason may be missing
			return strings.TrimSuffix("is not established yet: "+reason, ": ")
		}
	}
	return ""
}

// condition returns the condition of an object; nil if it has none.
func condition(object *unstructured.Unstructured, kind string) map[string]any {
	all, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions") // a malformed list counts as empty
	for _, c := range all {
		if c, ok := c.(map[string]any); ok && c["type"] == kind {
			return c
		}
	}
	return nil
}
