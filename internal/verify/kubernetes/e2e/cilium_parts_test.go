// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build cilium

package e2e_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/slipway-dev/slipway/internal/verify/image"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/e2e/cluster"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

const helm = "helm.sh/helm/v3/cmd/helm@v3.18.6"

// ciliumEnv names the release of Cilium that the tests run.
const ciliumEnv = "SLIPWAY_E2E_CILIUM"

// ciliumRelease is one that the node runs, from an image with its own programs.
type ciliumRelease struct {
	version string
	realkube.Release
	imported *cluster.Cluster // the node that has the image
}

// The releases, of which the newest is run where none is named.
var (
	cilium118      = &ciliumRelease{version: "1.18.3", Release: realkube.Cilium118}
	cilium120      = &ciliumRelease{version: "1.20.2", Release: realkube.Cilium120}
	ciliumReleases = []*ciliumRelease{cilium118, cilium120}
)

func namedCilium(t *testing.T) *ciliumRelease {
	t.Helper()
	version := cmp.Or(os.Getenv(ciliumEnv), cilium120.version)
	i := slices.IndexFunc(ciliumReleases, func(r *ciliumRelease) bool { return r.version == version })
	require.GreaterOrEqual(t, i, 0, "%s=%s is none of the releases that are built", ciliumEnv, version)
	return ciliumReleases[i]
}

func (r *ciliumRelease) image() string { return "slipway.test/cilium:" + r.version }

// goTool runs the Go command outside of any module's rules.
func goTool(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off"), os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err, string(out))
	return out
}

// source is the directory of the release's module.
func (r *ciliumRelease) source(t *testing.T) string {
	t.Helper()
	var downloaded struct{ Dir string }
	require.NoError(t, json.Unmarshal(goTool(t, "mod", "download", "-json", "github.com/cilium/cilium@v"+r.version), &downloaded))
	return downloaded.Dir
}

// contents are the files of an image.
type contents []image.File

// initContents are what Cilium's init containers run: its own programs and scripts,
// and bash and nsenter of this machine.
func (r *ciliumRelease) initContents(t *testing.T) contents {
	t.Helper()
	shell, err := node.Shell()
	require.NoError(t, err)
	// Busybox's shell would run its own nsenter.
	own := []string{"sh", "bash", "nsenter"}
	c := slices.DeleteFunc(contents(shell), func(f image.File) bool { return slices.Contains(own, filepath.Base(f.Path)) })
	for _, name := range own {
		c.program(t, name, name)
	}
	c.built(t, r, map[string]string{
		"/usr/bin/cilium-dbg": "cilium-dbg", "/usr/bin/cilium-mount": "tools/mount",
		"/usr/bin/cilium-sysctlfix": "tools/sysctlfix", "/opt/cni/bin/cilium-cni": "plugins/cilium-cni",
	})
	source := r.source(t)
	c.file(t, "/init-container.sh", filepath.Join(source, "images/cilium/init-container.sh"))
	c.file(t, "/install-plugin.sh", filepath.Join(source, "plugins/cilium-cni/install-plugin.sh"))
	plugins, err := node.Plugins("/cni", "loopback")
	require.NoError(t, err)
	return append(append(c, plugins...), image.File{Path: "/run", Mode: fs.ModeDir | 0o755})
}

// file adds one of this machine, unless it is there.
func (c *contents) file(t *testing.T, name, path string) {
	t.Helper()
	if slices.ContainsFunc(*c, func(f image.File) bool { return f.Path == name }) {
		return
	}
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	*c = append(*c, image.File{Path: name, Mode: 0o755, Content: content})
}

// directory adds the files of one of this machine.
func (c *contents) directory(t *testing.T, name, path string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(os.DirFS(path), ".", func(file string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			c.file(t, filepath.Join(name, file), filepath.Join(path, file))
		}
		return err
	}))
}

// built adds programs of a release, by the directories of their packages.
func (c *contents) built(t *testing.T, r *ciliumRelease, directories map[string]string) {
	t.Helper()
	for name, directory := range directories {
		path, err := r.Program(t.Context(), os.Stderr, directory)
		require.NoError(t, err)
		c.file(t, name, path)
	}
}

// program adds one of this machine and its libraries, where they are here, and a
// link to it.
func (c *contents) program(t *testing.T, name, as string) {
	t.Helper()
	path, err := exec.LookPath(name)
	require.NoError(t, err)
	path, err = filepath.EvalSymlinks(path)
	require.NoError(t, err)
	c.file(t, path, path)
	if link := "/bin/" + as; link != path {
		*c = append(*c, image.File{Path: link, Link: path})
	}
	for _, library := range libraries(t, path) {
		c.file(t, library, library)
	}
}

var libraryLine = regexp.MustCompile(`(/\S+) \(0x`)

func libraries(t *testing.T, program string) (paths []string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ldd", program).Output()
	require.NoError(t, err)
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if m := libraryLine.FindStringSubmatch(lines.Text()); m != nil {
			paths = append(paths, filepath.Clean(m[1]))
		}
	}
	return paths
}

// chart is the release's own, as helm renders it with these values.
func (r *ciliumRelease) chart(t *testing.T, values ...string) []byte {
	t.Helper()
	args := []string{"run", helm, "template", "cilium", filepath.Join(r.source(t), "install/kubernetes/cilium"), "-n", "kube-system", "--kube-version", "1.33.0"}
	for _, value := range values {
		args = append(args, "--set", value)
	}
	return goTool(t, args...)
}

func documents(t *testing.T, manifest []byte) (objects []object) {
	t.Helper()
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		o := object{}
		require.NoError(t, yaml.Unmarshal([]byte(document), &o))
		if len(o) > 0 {
			objects = append(objects, o)
		}
	}
	return objects
}

// own gives a container what this machine has: the image, and the capabilities.
func (r *ciliumRelease) own(container object) {
	container["image"], container["imagePullPolicy"] = r.image(), "Never"
	security, _ := container["securityContext"].(object)
	delete(security, "seLinuxOptions")
	capabilities, ok := security["capabilities"].(object)
	if !ok {
		return
	}
	if add, ok := capabilities["add"].([]any); ok {
		capabilities["add"] = slices.DeleteFunc(add, func(name any) bool { return name == "SYS_RESOURCE" || name == "SYS_MODULE" })
	}
}

var timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(Z|[+-]\d\d:\d\d)`)

// firstTime is the first time that an agent has written.
func firstTime(log string) time.Time {
	first, _ := time.Parse(time.RFC3339Nano, timestamp.FindString(log)) // zero if it is none
	return first
}
