// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package config_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

const (
	crdPath  = realkube.NodeConfigsPath
	v2       = "v2"
	v2alpha1 = "v2alpha1"
)

// serve makes the API server serve node configs in exactly these versions; with none, it has no
// such resource.
func serve(t testing.TB, s *realkube.Server, versions ...string) {
	t.Helper()
	if len(versions) == 0 {
		require.NoError(t, s.Admin().Delete(t.Context(), crdPath))
	} else {
		require.NoError(t, s.Admin().ApplyYAML(t.Context(), crdPath, realkube.NodeConfigs(versions...)))
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

// eventually asks until the API server has caught up.
func eventually(t testing.TB, ask func(context.Context) error) {
	t.Helper()
	require.NoError(t, realkube.Eventually(t.Context(), ask), "after a minute")
}
