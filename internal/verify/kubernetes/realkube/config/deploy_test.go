// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package config_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

// deployDir has what we ship for clusters.
const deployDir = "../../../../../examples/deploy/"

func manifest(t *testing.T, file string, replaced ...string) []realkube.Document {
	t.Helper()
	all, err := realkube.Manifest(deployDir+file, replaced...)
	require.NoError(t, err)
	return all
}

// postRender is a manifest with one of our components over it.
func postRender(t *testing.T, component string, manifest []byte) []byte {
	t.Helper()
	ours, err := realkube.PostRender(t.Context(), os.Stderr, deployDir+"post-render.sh", component, manifest)
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

// What nodeinit applies for another agent must not be recorded as Cilium's: a component that names none
// is refused.
func TestPLAN14_AComponentWithoutAnAgentIsRefused(t *testing.T) {
	chart := []byte("apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: kube-flannel-ds}\nspec: {template: {spec: {containers: [{name: flannel, image: x}]}}}\n")
	require.Contains(t, string(postRender(t, "flannel", chart)), "- --agent=flannel\n")

	other, says := t.TempDir(), &strings.Builder{}
	require.NoError(t, os.CopyFS(other, os.DirFS(deployDir)))
	file := filepath.Join(other, "flannel/kustomization.yaml")
	component, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, bytes.ReplaceAll(component, []byte("- --agent=flannel\n"), []byte("- --log-level=warn\n")), 0o644))
	out, err := realkube.PostRender(t.Context(), says, filepath.Join(other, "post-render.sh"), "flannel", chart)
	require.Error(t, err)
	require.Empty(t, out)
	require.Contains(t, says.String(), "the component flannel has a nodeinit without --agent")
}

// The API server accepts every manifest that we ship.
func TestDeploymentExamplesAreAccepted(t *testing.T) {
	files, err := filepath.Glob(deployDir + "*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range append(files, "report/rbac.yaml") {
		for _, d := range manifest(t, strings.TrimPrefix(file, deployDir)) {
			dryRun(t, d)
		}
	}
}
