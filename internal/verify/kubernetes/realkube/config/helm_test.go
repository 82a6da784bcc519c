// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build charts

package config_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/programs"
)

const (
	helm3 = "helm.sh/helm/v3/cmd/helm@v3.18.6"
	helm4 = "helm.sh/helm/v4/cmd/helm@v4.3.1" // its post-renderers are plugins
)

// helm returns the path of a helm release, which takes 4 CPU-minutes to build the first time.
func helm(t *testing.T, release string) string {
	t.Helper()
	name := strings.NewReplacer("/", "-", "@", "-").Replace(release)
	dir, err := programs.Kept(t.Context(), os.Stderr, "realkube", name, func(dir string) error {
		return programs.Go(t.Context(), os.Stderr, dir, []string{"GOBIN=" + dir}, "install", release)
	})
	require.NoError(t, err)
	return filepath.Join(dir, "helm")
}

// helmHome gives helm its own directories, apart from the machine's user's.
func helmHome(t *testing.T) {
	t.Helper()
	for _, name := range []string{"HELM_DATA_HOME", "HELM_CACHE_HOME", "HELM_CONFIG_HOME"} {
		t.Setenv(name, t.TempDir())
	}
}

func buildPostrender(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "postrender")
	require.NoError(t, programs.Go(t.Context(), os.Stderr, "../../../../../examples/postrender", nil, "build", "-o", path, "."))
	return path
}

// Helm 3 and 4 run both post-renderers as examples/deploy/README.md says: version 3 as a
// program, version 4 as a plugin. The DaemonSet is the same, and helm's error includes a
// refusal.
func TestChartsWithBothHelms(t *testing.T) {
	kubectl(t) // in the PATH for the components
	helmHome(t)
	postrender := buildPostrender(t)
	plugin := filepath.Join(t.TempDir(), "slipway-postrender")
	require.NoError(t, os.CopyFS(plugin, os.DirFS("../../../../../examples/postrender/helm4/slipway-postrender")))
	program, err := os.ReadFile(postrender)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(plugin, "postrender"), program, 0o755))
	component, err := filepath.Abs(deployDir + "helm4/slipway-component")
	require.NoError(t, err)

	chart := filepath.Join(download(t, "github.com/cilium/cilium@v1.20.2"), "install/kubernetes/cilium")
	template := func(release string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), helm(t, release), append([]string{"template", "cilium", chart, "-n", "kube-system", "--kube-version", "1.36.3", "--set", ownImage}, args...)...)
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			return said.String(), err
		}
		return daemonSet(t, string(out)), nil
	}
	script, err := filepath.Abs(deployDir + "post-render.sh")
	require.NoError(t, err)
	third := map[string]string{}
	for name, program := range map[string]string{"--as=run": postrender, "cilium/one": script} { // version 3 does not start beside plugins of version 4
		out, err := template(helm3, "--post-renderer", program, "--post-renderer-args", name)
		require.NoError(t, err, out)
		require.Contains(t, out, "nodeinit")
		third[name] = out
	}
	for _, path := range []string{plugin, component} {
		out, err := exec.CommandContext(t.Context(), helm(t, helm4), "plugin", "install", path).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	for name, plugin := range map[string]string{"--as=run": "slipway-postrender", "cilium/one": "slipway-component"} {
		out, err := template(helm4, "--post-renderer", plugin, "--post-renderer-args", name)
		require.NoError(t, err, out)
		require.Equal(t, strings.Replace(third[name], "        - --k8s-api-server-urls=\n", "", 1), out, "%s: helm 4 renders the chart's null as an absent key", name)
	}
	out, err := template(helm4, "--post-renderer", "slipway-postrender", "--set", "kubeProxyReplacement=true")
	require.Error(t, err)
	require.Contains(t, out, "no address of the API server")
	out, err = template(helm4, "--post-renderer", "slipway-component", "--post-renderer-args", "cilium/one", "--set", "cni.install=false")
	require.Error(t, err)
	require.Contains(t, out, "examples/postrender follows others")
}

// daemonSet returns the agent's DaemonSet from a release, without helm's comments.
func daemonSet(t *testing.T, release string) string {
	t.Helper()
	for document := range strings.SplitSeq(release, "\n---\n") {
		if regexp.MustCompile(`(?m)^kind: DaemonSet$`).MatchString(document) && strings.Contains(document, "\n  name: cilium\n") {
			return strings.TrimSpace(regexp.MustCompile(`(?m)^# .*\n|^---\n`).ReplaceAllString(document, ""))
		}
	}
	t.Fatal("no DaemonSet of the agent:\n" + release)
	return ""
}

// The files used in the post-renderer's own tests equal helm's output.
func TestChartsAreThoseOfThePostRenderersTests(t *testing.T) {
	for _, version := range ciliums {
		chart := filepath.Join(download(t, "github.com/cilium/cilium@v"+version), "install/kubernetes/cilium")
		out, err := exec.CommandContext(t.Context(), helm(t, helm3), "template", "cilium", chart, "-n", "kube-system", "--kube-version", "1.33.0", "-s", "templates/cilium-agent/daemonset.yaml").Output()
		require.NoError(t, err)
		kept, err := os.ReadFile("../../../../../examples/postrender/testdata/cilium-" + version + ".yaml")
		require.NoError(t, err)
		require.Equal(t, string(kept), string(out), version)
	}
}
