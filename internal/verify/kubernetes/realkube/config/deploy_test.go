// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package config_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

// places are the API paths of the kinds used in the deployment examples.
var places = map[string]string{
	"ServiceAccount":             "/api/v1/namespaces/kube-system/serviceaccounts/%s",
	"ClusterRole":                "/apis/rbac.authorization.k8s.io/v1/clusterroles/%s",
	"ClusterRoleBinding":         "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/%s",
	"Role":                       "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles/%s",
	"RoleBinding":                "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings/%s",
	"DaemonSet":                  "/apis/apps/v1/namespaces/kube-system/daemonsets/%s",
	"FlowSchema":                 "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/%s",
	"PriorityLevelConfiguration": "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/%s",

	"ValidatingAdmissionPolicy":        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/%s",
	"ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/%s",
}

var (
	kindLine = regexp.MustCompile(`(?m)^kind: (\S+)$`)
	nameLine = regexp.MustCompile(`(?m)^metadata:\n  name: (\S+)\n(?:  namespace: (\S+)\n)?`)
)

// postRender is a manifest with one of our components over it.
func postRender(t *testing.T, component string, manifest []byte) []byte {
	t.Helper()
	ours, err := realkube.PostRender(t.Context(), os.Stderr, "../../../../../examples/deploy/post-render.sh", component, manifest)
	require.NoError(t, err)
	return ours
}

// The API server validates every field of every manifest that we ship.
func TestDeploymentExamplesAreAccepted(t *testing.T) {
	files, err := filepath.Glob("../../../../../examples/deploy/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	files = append(files, "../../../../../examples/deploy/report/rbac.yaml")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		for document := range strings.SplitSeq(string(raw), "\n---\n") {
			kind, name := kindLine.FindStringSubmatch(document), nameLine.FindStringSubmatch(document)
			require.NotNil(t, kind, document)
			require.NotNil(t, name, document)
			require.Contains(t, places, kind[1])
			path := fmt.Sprintf(places[kind[1]], name[1])
			if name[2] != "" {
				path = strings.Replace(path, "/kube-system/", "/"+name[2]+"/", 1)
			}
			_, err := server.Admin().Do(t.Context(), http.MethodPatch,
				path+"?fieldManager=test&fieldValidation=Strict&dryRun=All", "application/apply-patch+yaml", []byte(document))
			require.NoError(t, err, "%s: %s", file, path)
		}
	}
}
