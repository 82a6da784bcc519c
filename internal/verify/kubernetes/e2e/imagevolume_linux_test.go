// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/image"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/e2e/cluster"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

const (
	newContainerd  = "2.1.4" // the first line that has image volumes
	unmodified     = "slipway.test/cilium:1"
	nodeinitsImage = "example.com/nodeinit:latest"
)

// The component for image volumes, over what a chart renders: the life of a node whose
// agent's image knows nothing of nodeinit, which comes from an image of its own.
func TestAnImageVolumeBesideAnUnmodifiedAgent(t *testing.T) {
	testns.SkipShort(t, "a minute, and a containerd to build")
	withContainerd(t, newContainerd)
	begin(t)
	require.NoError(t, node.Import(t.Context(), unmodified, []string{"/usr/bin/cilium-agent"}, unmodifiedAgent(t)...))
	importNodeinit(t)
	on(t, script(t, "foreign.sh"))
	on(t, "mkdir -p /run/cilium/netns; touch /run/xtables.lock; chmod 600 /run/xtables.lock") // which the kubelet makes where hostPath names it
	look(t)                                                                                   // looking for rules makes the kernel's tables
	life(t, imageVolume(t))
}

// withContainerd has the test, and those that it calls, on a cluster of its own, with
// another containerd than the tests share.
func withContainerd(t *testing.T, version string) {
	t.Helper()
	needNode(t)
	own, err := cluster.Start(context.WithoutCancel(t.Context()), os.Stderr, version)
	require.NoError(t, err)
	shared := node
	node = own
	t.Cleanup(func() {
		node = shared
		require.NoError(t, own.Close())
	})
	require.Contains(t, on(t, "containerd --version"), version)
	require.NoError(t, importAgent(t.Context())) // for what uninstalls
}

// imageVolume is a chart's DaemonSet with our component.
func imageVolume(t *testing.T) *deployment {
	t.Helper()
	d := parse(t, render(t, "testdata/cilium.yaml", "cilium/image-volume"))
	require.Empty(t, d.pod["initContainers"])
	for _, v := range d.pod["volumes"].([]any) {
		if source, is := v.(object)["image"].(object); is {
			source["pullPolicy"] = "Never" // there is no registry
		}
	}
	d.flags("--cni-conf=/cni-conf/05-e2e.conflist", "--cni-conf-name=05-e2e.conflist", "--k8s-retry-spread=1s")
	return d
}

// render is a manifest with one of our components over it, as helm's post-renderer has it.
func render(t *testing.T, file, component string) string {
	t.Helper()
	manifest, err := os.ReadFile(file)
	require.NoError(t, err)
	return postRender(t, manifest, component)
}

func postRender(t *testing.T, manifest []byte, component string) string {
	t.Helper()
	out, err := realkube.PostRender(t.Context(), os.Stderr, filepath.Join(deployDir, "post-render.sh"), component, manifest)
	require.NoError(t, err)
	return string(out)
}

// unmodifiedAgent are the files of an agent's image as its authors make it: the agent, and
// plugins in two directories.
func unmodifiedAgent(t *testing.T) []image.File {
	t.Helper()
	shell, err := node.Shell()
	require.NoError(t, err)
	plugins, err := node.Plugins("/cni", "bridge", "host-local", "loopback")
	require.NoError(t, err)
	own, err := node.Plugins("/opt/cni/bin", "ptp")
	require.NoError(t, err)
	own[0].Path = "/opt/cni/bin/cilium-cni"
	return append(append(append(shell, plugins...), own...),
		image.File{Path: "/usr/bin/cilium-agent", Mode: 0o755, Content: []byte(script(t, "standin.sh"))},
		image.File{Path: "/cni-conf/05-e2e.conflist", Mode: 0o644, Content: []byte(script(t, "05-e2e.conflist"))})
}

// importNodeinit gives the node the image that make image writes.
func importNodeinit(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "run", "./pack", "-name", nodeinitsImage, "-arch", runtime.GOARCH, "-o", dir)
	cmd.Dir = "../../image"
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	archive, err := os.ReadFile(filepath.Join(dir, "nodeinit-"+runtime.GOARCH+".tar"))
	require.NoError(t, err)
	require.NoError(t, node.ImportArchive(t.Context(), nodeinitsImage, archive))
}
