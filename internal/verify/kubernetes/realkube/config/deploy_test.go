// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package config_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

// deployFolder has what we ship for clusters.
const deployFolder = "../../../../../examples/deploy/"

func manifest(t *testing.T, file string, replaced ...string) []realkube.Document {
	t.Helper()
	all, err := realkube.Manifest(deployFolder+file, replaced...)
	require.NoError(t, err)
	return all
}

// postRender is a manifest with one of our components over it.
func postRender(t *testing.T, component string, manifest []byte) []byte {
	t.Helper()
	ours, err := realkube.PostRender(t.Context(), os.Stderr, deployFolder+"post-render.sh", component, manifest)
	require.NoError(t, err)
	return ours
}

// dryRun returns a document as the API server would keep it, which validates every field.
func dryRun(t *testing.T, d realkube.Document) []byte {
	t.Helper()
	answer, err := server.Admin().Do(t.Context(), http.MethodPatch, d.Path+"?fieldManager=test&fieldValidation=Strict&dryRun=All", "application/apply-patch+yaml", []byte(d.Text))
	require.NoError(t, err, d.Text)
	return answer
}

// The API server accepts every manifest that we ship.
func TestDeploymentExamplesAreAccepted(t *testing.T) {
	files, err := filepath.Glob(deployFolder + "*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range append(files, "report/rbac.yaml") {
		for _, d := range manifest(t, strings.TrimPrefix(file, deployFolder)) {
			dryRun(t, d)
		}
	}
}
