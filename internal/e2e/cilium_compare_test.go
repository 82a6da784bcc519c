// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build compare

package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/slipway-dev/slipway/internal/image"
	"github.com/slipway-dev/slipway/internal/realkube"
)

const (
	ciliumImage = "slipway.test/cilium:1"
	ciliumPath  = "github.com/cilium/cilium@v1.18.3"
	helm        = "helm.sh/helm/v3/cmd/helm@v3.18.6"
)

// goTool runs the Go command outside of any module's rules.
func goTool(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off"), os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err, string(out))
	return out
}

// ciliumSource is the folder of Cilium's module.
func ciliumSource(t *testing.T) string {
	t.Helper()
	var downloaded struct{ Dir string }
	require.NoError(t, json.Unmarshal(goTool(t, "mod", "download", "-json", ciliumPath), &downloaded))
	return downloaded.Dir
}

// importCilium gives the node an image with what Cilium's init containers run: its
// own programs and scripts, and bash and nsenter of this machine.
func importCilium(t *testing.T) {
	t.Helper()
	files, err := node.Shell()
	require.NoError(t, err)
	add := func(name, path string) {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		files = slices.DeleteFunc(files, func(f image.File) bool { return f.Path == name })
		files = append(files, image.File{Path: name, Mode: 0o755, Content: content})
	}
	for name, folder := range map[string]string{
		"/usr/bin/cilium-dbg": "cilium-dbg", "/usr/bin/cilium-mount": "tools/mount",
		"/usr/bin/cilium-sysctlfix": "tools/sysctlfix", "/opt/cni/bin/cilium-cni": "plugins/cilium-cni",
	} {
		path, err := realkube.CiliumProgram(t.Context(), os.Stderr, folder)
		require.NoError(t, err)
		add(name, path)
	}
	source := ciliumSource(t)
	add("/init-container.sh", filepath.Join(source, "images/cilium/init-container.sh"))
	add("/install-plugin.sh", filepath.Join(source, "plugins/cilium-cni/install-plugin.sh"))
	// Busybox's shell would run its own nsenter.
	for _, name := range []string{"sh", "bash", "nsenter"} {
		path, err := exec.LookPath(name)
		require.NoError(t, err)
		add("/bin/"+name, path)
		for _, library := range libraries(t, path) {
			add(library, library)
		}
	}
	plugins, err := node.Plugins("/cni", "loopback")
	require.NoError(t, err)
	standin, err := build(t.Context(), "internal/e2e/standin")
	require.NoError(t, err)
	files = append(append(files, plugins...), image.File{Path: "/standin", Mode: 0o755, Content: standin},
		image.File{Path: "/run", Mode: fs.ModeDir | 0o755})
	require.NoError(t, node.Import(t.Context(), ciliumImage, nil, files...))
}

var libraryLine = regexp.MustCompile(`(/\S+) \(0x`)

func libraries(t *testing.T, program string) (paths []string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ldd", program).Output()
	require.NoError(t, err)
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if m := libraryLine.FindStringSubmatch(lines.Text()); m != nil {
			paths = append(paths, m[1])
		}
	}
	return paths
}

// ciliumsSix is the DaemonSet of Cilium's chart, with its own six init containers.
// Changed are the images, the agent, and the capabilities that this machine has not
// got.
func ciliumsSix(t *testing.T) *deployment {
	t.Helper()
	chart := goTool(t, "run", helm, "template", "cilium", filepath.Join(ciliumSource(t), "install/kubernetes/cilium"), "-n", "kube-system", "--kube-version", "1.33.0")
	d := &deployment{name: "cilium"}
	for document := range strings.SplitSeq(string(chart), "\n---\n") {
		o := object{}
		require.NoError(t, yaml.Unmarshal([]byte(document), &o))
		if len(o) == 0 {
			continue
		}
		name, kind := at(o, "metadata")["name"].(string), o["kind"].(string)
		needed := []string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ConfigMap", "DaemonSet"}
		if !slices.Contains(needed, kind) || !slices.Contains([]string{"cilium", "cilium-config", "cilium-config-agent"}, name) {
			continue
		}
		d.objects = append(d.objects, o)
		if kind == "DaemonSet" {
			at(o, "spec", "selector")["matchLabels"] = object{"app": "cilium"}
			at(o, "spec", "template", "metadata")["labels"] = object{"app": "cilium"}
			d.pod = at(o, "spec", "template", "spec")
		}
	}
	require.NotNil(t, d.pod)
	inits := d.pod["initContainers"].([]any)
	require.Len(t, inits, 6)
	for _, c := range inits {
		own(c.(object))
	}
	d.init = inits[0].(object)
	d.pod["containers"] = []any{object{"name": "cilium-agent", "image": ciliumImage, "command": []any{"/standin"}}}
	delete(d.pod, "affinity")
	return d
}

func own(container object) {
	container["image"], container["imagePullPolicy"] = ciliumImage, "Never"
	security, _ := container["securityContext"].(object)
	delete(security, "seLinuxOptions")
	capabilities, there := security["capabilities"].(object)
	if !there {
		return
	}
	if add, there := capabilities["add"].([]any); there {
		capabilities["add"] = slices.DeleteFunc(add, func(name any) bool { return name == "SYS_RESOURCE" || name == "SYS_MODULE" })
	}
}
