// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package config_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/realkube"
)

const (
	crdPath  = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ciliumnodeconfigs.cilium.io"
	v2       = "v2"
	v2alpha1 = "v2alpha1"
)

// crd is the custom resource of node configs. Its selector may be absent or
// null, as the rules for it allow.
func crd(served ...string) []byte {
	version := func(name string, stored bool) string {
		on := false
		for _, v := range served {
			on = on || v == name
		}
		return fmt.Sprintf(`
  - name: %s
    served: %v
    storage: %v
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              defaults: {type: object, nullable: true, additionalProperties: {type: string}}
              nodeSelector: {type: object, nullable: true, x-kubernetes-preserve-unknown-fields: true}
`, name, on, stored)
	}
	return []byte(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ciliumnodeconfigs.cilium.io}
spec:
  group: cilium.io
  scope: Namespaced
  names: {kind: CiliumNodeConfig, listKind: CiliumNodeConfigList, plural: ciliumnodeconfigs, singular: ciliumnodeconfig}
  versions:` + version(v2, true) + version(v2alpha1, false))
}

// serve makes the API server serve node configs in these versions, and no
// other; with none it has no such resource.
func serve(t testing.TB, s *realkube.Server, versions ...string) {
	t.Helper()
	if len(versions) == 0 {
		require.NoError(t, s.Admin().Delete(t.Context(), crdPath))
	} else {
		require.NoError(t, s.Admin().ApplyYAML(t.Context(), crdPath, crd(versions...)))
	}
	want := map[string]bool{}
	for _, v := range versions {
		want[v] = true
	}
	for _, v := range []string{v2, v2alpha1} {
		eventually(t, func(ctx context.Context) error {
			_, err := s.Admin().Get(ctx, nodeConfigsPath(v, "default"))
			if served := !isStatus(err, http.StatusNotFound); served != want[v] {
				return fmt.Errorf("%s is served: %v", v, served)
			}
			return nil
		})
	}
}

func nodeConfigsPath(version, namespace string) string {
	return "/apis/cilium.io/" + version + "/namespaces/" + namespace + "/ciliumnodeconfigs"
}

func isStatus(err error, code int) bool {
	var status *realkube.Error
	return errors.As(err, &status) && status.Code == code
}

// eventually asks until the API server has come around to it.
func eventually(t testing.TB, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f(ctx)
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			require.NoError(t, err, "after a minute")
		}
	}
}
