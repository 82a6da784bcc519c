// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package realcri_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realcri"
	"github.com/slipway-dev/slipway/internal/verify/programs"
)

// node is a throw-away node with the files that nodeinit needs.
type node struct {
	*bootstraptest.Node
	t              *testing.T
	work, nodeinit string
}

const usual = "/run/containerd/containerd.sock"

const plugin = `#!/bin/sh
echo '{"cniVersion":"1.0.0","supportedVersions":["0.3.1","1.0.0"]}'
`

func newNode(t *testing.T) *node {
	t.Helper()
	nodeinit, err := programs.Program{Package: "./examples/nodeinit"}.Build(t.Context())
	require.NoError(t, err)
	n := &node{bootstraptest.NewNode(t), t, t.TempDir(), nodeinit}
	for name, content := range map[string]string{
		"plugins/test-cni": plugin, "plugins/loopback": plugin, "config.yaml": "cluster-name: test\n",
		"test.conflist": `{"cniVersion":"1.0.0","name":"test","plugins":[{"type":"test-cni"}]}`,
	} {
		path := filepath.Join(n.work, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o755))
	}
	return n
}

// containerd starts a version, which looks for CNI files in two directories of place: as a file says
// that its configuration imports. It returns when the version listens.
func (n *node) containerd(version, place string) *bootstraptest.Cmd {
	n.t.Helper()
	root, err := realcri.Root(n.t.Context(), os.Stderr, version)
	require.NoError(n.t, err)
	imported := "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".cni]\nbin_dir = \"PLACE/bin\"\nconf_dir = \"PLACE/net.d\"\n"
	for name, content := range map[string]string{
		"config":   "version = 2\nimports = [\"" + n.work + "/*.toml\"]\n",
		"cni.toml": strings.ReplaceAll(imported, "PLACE", place),
	} {
		require.NoError(n.t, os.WriteFile(filepath.Join(n.work, name), []byte(content), 0o644))
	}
	cmd := n.Command(filepath.Join(root, "usr/bin/containerd"), "--config", filepath.Join(n.work, "config"))
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	require.NoError(n.t, cmd.Start())
	n.shell("until [ -S " + usual + " ]; do sleep 0.05; done")
	return cmd
}

// args returns the arguments of apply and check.
func (n *node) args(command string, more ...string) []string {
	return append([]string{command, "--source", "file:" + n.work + "/config.yaml", "--dest", "/run/agent-config",
		"--plugins", n.work + "/plugins", "--cni-conf", n.work + "/test.conflist"}, more...)
}

// run runs nodeinit on the node.
func (n *node) run(args ...string) (code int, stdout, stderr string) {
	n.t.Helper()
	return n.command(n.nodeinit, args...)
}

// shell runs a script on the node and returns its output.
func (n *node) shell(script string) string {
	n.t.Helper()
	code, stdout, stderr := n.command("sh", "-euc", script)
	require.Zero(n.t, code, "%s: %s", script, stderr)
	return strings.TrimSpace(stdout)
}

func (n *node) command(name string, args ...string) (code int, stdout, stderr string) {
	n.t.Helper()
	var out, errs bytes.Buffer
	cmd := n.Command(name, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), out.String(), errs.String()
	}
	require.NoError(n.t, err)
	return 0, out.String(), errs.String()
}

// A real containerd's directories are set in a file that its configuration imports. Files are
// installed there, moved when that file changes, and loaded each time.
func TestRealContainerdLoadsWhatIsInstalled(t *testing.T) {
	versions := realcri.Versions
	if testing.Short() {
		versions = []string{realcri.Debian} // which needs no build
	}
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			n := newNode(t)
			for _, place := range []string{"/var/lib/k3s", "/etc/cni"} {
				containerd := n.containerd(version, place)
				code, stdout, stderr := n.run(n.args("apply", "--wait-loaded", "1m")...)
				require.Zero(t, code, stdout+stderr)
				require.Equal(t, "loopback\ntest-cni\n05-cilium.conflist", n.shell("ls "+place+"/bin; ls "+place+"/net.d"))
				code, stdout, stderr = n.run(n.args("check", "--wait-loaded", "1m")...)
				require.Zero(t, code, stdout+stderr)
				require.NoError(t, containerd.Process.Kill())
				_ = containerd.Wait() // killed
				n.shell("rm " + usual)
			}
			require.Empty(t, n.shell("find /var/lib/k3s -type f"))
			code, stdout, stderr := n.run("uninstall")
			require.Zero(t, code, stdout+stderr)
			require.Empty(t, n.shell("find /etc/cni -type f"))
		})
	}
}
