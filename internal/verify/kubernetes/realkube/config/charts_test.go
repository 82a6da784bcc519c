// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build charts

package config_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

// Released charts of other projects, by the directory of their Go module.
var charts = []struct {
	module, directory, namespace string
	versions                     []string
	components                   []string
}{
	{"github.com/cilium/cilium", "install/kubernetes/cilium", "kube-system",
		[]string{"v1.16.19", "v1.17.8", "v1.18.3", "v1.19.0", "v1.19.7", "v1.20.2"}, []string{"cilium/one", "cilium/one-read-only-etc", "cilium/one-kube-proxy", "cilium/run", "cilium/run-kube-proxy", "cilium/image-volume", "postrender"}},
	{"github.com/flannel-io/flannel", "chart/kube-flannel", "kube-flannel", []string{"v0.25.7", "v0.26.7"}, []string{"flannel"}},
}

// The API server accepts each whole chart as changed by the components and by the post-renderer
// in Go, and none of the chart's init containers remains.
func TestChartsOfOthersWithOurComponents(t *testing.T) {
	kubectl := kubectl(t)
	for _, chart := range charts {
		t.Run(chart.namespace, func(t *testing.T) {
			for _, name := range []string{chart.namespace, "cilium-secrets"} { // a dry run does not create them
				kubectl(t, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name), "apply", "--server-side", "-f", "-")
			}
			for _, version := range chart.versions {
				rendered := render(t, chart.module+"@"+version, chart.directory, chart.namespace)
				for _, component := range chart.components {
					if component == "postrender" && version < "v1.18" {
						continue // for charts from 1.18 on
					}
					t.Run(component+" "+version, func(t *testing.T) {
						cmd := exec.CommandContext(t.Context(), deployDir+"post-render.sh", component)
						if component == "postrender" {
							cmd = exec.CommandContext(t.Context(), buildPostrender(t))
						}
						cmd.Stdin, cmd.Stderr = bytes.NewReader(rendered), os.Stderr
						ours, err := cmd.Output()
						require.NoError(t, err)
						require.Equal(t, objects(string(rendered)), objects(string(ours)), "none is lost")
						kubectl(t, ours, "apply", "--dry-run=server", "--validate=strict", "-f", "-")
						requireOurs(t, ours, component)
					})
				}
			}
		})
	}
}

var kind = regexp.MustCompile(`(?m)^kind: `)

// objects is the number of objects in a release.
func objects(release string) int { return len(kind.FindAllString(release, -1)) }

// kubectl is put in the PATH, and returned as a function.
func kubectl(t *testing.T) func(t *testing.T, stdin []byte, args ...string) []byte {
	t.Helper()
	binary, err := realkube.Binary(t.Context(), os.Stderr)
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.Symlink(binary, filepath.Join(dir, "kubectl")))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	config, err := server.Kubeconfig(dir, realkube.Admin, server.URL)
	require.NoError(t, err)
	return func(t *testing.T, stdin []byte, args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "kubectl"), append(args, "--kubeconfig", config)...)
		cmd.Stdin, cmd.Stderr = bytes.NewReader(stdin), os.Stderr
		out, err := cmd.Output()
		require.NoError(t, err, string(out))
		return out
	}
}

// ownImage is the value for an image with nodeinit: the post-renderer refuses released ones.
const ownImage = "image.override=example.com/cilium-nodeinit:1"

func render(t *testing.T, module, directory, namespace string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), helm(t, helm3), append([]string{
		"template", "agent", filepath.Join(download(t, module), directory), "-n", namespace, "--kube-version", "1.33.0", "--set", ownImage,
	}, args...)...)
	cmd.Stderr = os.Stderr
	rendered, err := cmd.Output()
	require.NoError(t, err)
	return rendered
}

// requireOurs checks that nodeinit runs before the agent, or is the command that starts it, and
// waits for kube-proxy where the component says so.
func requireOurs(t *testing.T, release []byte, component string) {
	t.Helper()
	for document := range bytes.SplitSeq(release, []byte("\n---\n")) {
		if !bytes.Contains(document, []byte("\nkind: DaemonSet\n")) || bytes.Contains(document, []byte("\n  name: cilium-envoy\n")) {
			continue
		}
		inits, containers := podOf(t, document)
		ours := containers[0]
		if strings.HasPrefix(component, "cilium/run") || component == "cilium/image-volume" {
			require.Empty(t, inits)
			require.Contains(t, ours.Command, "cilium-agent")
		} else {
			require.Len(t, inits, 1)
			ours = inits[0]
		}
		require.Equal(t, "nodeinit", filepath.Base(ours.Command[0]))
		agent, _, _ := strings.Cut(component, "/")
		require.Contains(t, append(ours.Command, ours.Args...), "--agent="+strings.Replace(agent, "postrender", "cilium", 1))
		waits := slices.Contains(ours.Env, struct{ Name, Value string }{"SLIPWAY_WAIT_FOR_KUBE_PROXY", "4m"})
		require.Equal(t, strings.HasSuffix(component, "-kube-proxy"), waits)
	}
}
