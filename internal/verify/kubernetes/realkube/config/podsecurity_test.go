// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package config_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

// The shipped pods need a namespace of Pod Security level privileged, because they violate
// these restrictions of level baseline, as the API server reports them.
// examples/deploy/README.md says the same.
func TestWhatPodSecurityHasToAllow(t *testing.T) {
	node := []string{"forbidden AppArmor profile", "host namespaces", "hostPath volumes", "non-default capabilities", "seLinuxOptions"}
	baseline := map[string][]string{
		"nodeinit.yaml": node, "uninstall.yaml": node, "uninstall.yaml with cleanup": node, "drift.yaml": node,
		"agent.yaml": append([]string{"probe or lifecycle host"}, node...), // it serves its health on loopback only
	}
	for _, level := range []string{"privileged", "baseline", "restricted"} {
		create(t, "/api/v1/namespaces", fields{"metadata": fields{"name": level, "labels": fields{"pod-security.kubernetes.io/enforce": level}}})
		create(t, "/api/v1/namespaces/"+level+"/serviceaccounts", fields{"metadata": fields{"name": "default"}})
	}
	for file, pod := range shippedPods(t) {
		admits := func(namespace string) error {
			_, err := server.Admin().Do(t.Context(), http.MethodPost, "/api/v1/namespaces/"+namespace+"/pods?dryRun=All", "application/json", pod)
			return err
		}
		require.NoError(t, admits("privileged"), file)
		require.ElementsMatch(t, baseline[file], violations(t, admits("baseline")), file)
		require.Subset(t, violations(t, admits("restricted")), []string{"runAsUser=0", "runAsNonRoot != true"}, file)
	}
}

// shippedPods are the pods of the DaemonSets of examples/deploy, by file and component, as
// the API server understands them.
func shippedPods(t *testing.T) map[string][]byte {
	t.Helper()
	pods, manifests := map[string][]byte{}, map[string][]byte{}
	files, err := filepath.Glob(deployDir + "*.yaml")
	require.NoError(t, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		manifests[filepath.Base(file)] = raw
	}
	manifests["uninstall.yaml with cleanup"] = postRender(t, "cleanup", manifests["uninstall.yaml"])
	for file, raw := range manifests {
		documents, err := realkube.Documents(string(raw))
		require.NoError(t, err)
		for _, d := range documents {
			if d.Kind != "DaemonSet" {
				continue
			}
			var set struct {
				Spec struct {
					Template struct {
						Spec fields `json:"spec"`
					} `json:"template"`
				} `json:"spec"`
			}
			require.NoError(t, json.Unmarshal(dryRun(t, d), &set))
			spec := set.Spec.Template.Spec
			delete(spec, "serviceAccountName") // it does not exist in the test's namespaces
			delete(spec, "serviceAccount")
			pod, err := json.Marshal(fields{"metadata": fields{"name": "x"}, "spec": spec})
			require.NoError(t, err)
			pods[file] = pod
		}
	}
	require.Len(t, pods, 5)
	return pods
}

var restriction = regexp.MustCompile(`(?:"\S+:latest": |\), )([^(]+?) \(`)

// violations lists the restrictions that refused a pod.
func violations(t *testing.T, err error) (names []string) {
	t.Helper()
	var refused *realkube.Error
	require.True(t, errors.As(err, &refused), "%v", err)
	require.Equal(t, http.StatusForbidden, refused.Code)
	var status struct{ Message string }
	require.NoError(t, json.Unmarshal([]byte(refused.Body), &status))
	for _, m := range restriction.FindAllStringSubmatch(status.Message, -1) {
		names = append(names, m[1])
	}
	require.NotEmpty(t, names, status.Message)
	return names
}
