// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package installers_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/installers"
)

// upstream is a file of an agent's repository with tests of its installer.
type upstream struct{ agent, file, commit string }

// row is one of these tests, rebuilt.
type row struct {
	name string // as upstream names it
	test func(*node)

	// differs is why ours behaves differently from theirs: the test then shows what ours does.
	differs string
	// own marks a case about content that the agent's author supplies: our packages only publish
	// it.
	own bool
}

// rebuilt runs the rows, and reports how many agree with upstream's.
func rebuilt(t *testing.T, from upstream, rows []row) {
	passed, own, differ := 0, 0, []string{}
	for _, r := range rows {
		ok := t.Run(r.name, func(t *testing.T) { r.test(newCase(t)) })
		switch {
		case !ok:
		case r.differs != "":
			differ = append(differ, fmt.Sprintf("%q differs: %s", r.name, r.differs))
		default:
			passed++
		}
		if ok && r.own {
			own++
		}
	}
	t.Logf("%s, %s at %s: of %d cases %d agree with theirs (%d of them about content of the agent's author), %d differ\n%s",
		from.agent, from.file, from.commit, len(rows), passed, own, len(differ), strings.Join(differ, "\n"))
}

// node is a node in a directory, and a container's files beside it.
type node struct {
	installers.Setting
	t *testing.T
}

// newCase makes the folders that upstream's tests make before each case.
func newCase(t *testing.T) *node {
	t.Helper()
	n := &node{installers.Setting{Root: testns.TempDir(t), Image: t.TempDir(), Env: map[string]string{}, Owner: "pod"}, t}
	for _, dir := range []string{bin, conf, "/run", "/var/lib", "/var/log"} {
		require.NoError(t, os.MkdirAll(n.path(dir), 0o755))
	}
	return n
}

const (
	bin  = "/opt/cni/bin"
	conf = "/etc/cni/net.d"
)

func (n *node) path(p string) string { return filepath.Join(n.Root, p) }

// put writes a file of the node's.
func (n *node) put(path, content string, mode fs.FileMode) {
	n.t.Helper()
	writeFile(n.t, n.path(path), content, mode)
}

func writeFile(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), mode), os.Chmod(path, mode)))
}

// image fills the container.
func image(t *testing.T, dir string, files []installers.File) {
	t.Helper()
	for _, f := range files {
		writeFile(t, filepath.Join(dir, f.Path), f.Content, f.Mode)
	}
}

// readOnly makes a folder of the node's read-only, like a container's mount.
func (n *node) readOnly(path string) {
	n.t.Helper()
	dir := n.path(path)
	require.NoError(n.t, os.MkdirAll(dir, 0o755))
	require.NoError(n.t, unix.Mount(dir, dir, "", unix.MS_BIND, ""))
	require.NoError(n.t, unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
}

func (n *node) content(path string) string {
	n.t.Helper()
	content, err := os.ReadFile(n.path(path))
	require.NoError(n.t, err)
	return string(content)
}

func (n *node) has(paths ...string) {
	n.t.Helper()
	for _, path := range paths {
		require.FileExists(n.t, n.path(path))
	}
}

func (n *node) hasNot(paths ...string) {
	n.t.Helper()
	for _, path := range paths {
		require.NoFileExists(n.t, n.path(path))
	}
}

// applied runs a plan twice: the second run has nothing to do.
func applied(t *testing.T, p *bootstrap.Plan) {
	t.Helper()
	_, err := p.Apply(t.Context())
	require.NoError(t, err)
	report, err := p.Check(t.Context())
	require.NoError(t, err)
	for _, r := range report.Results {
		require.Empty(t, r.Changes, r.Step)
	}
}
