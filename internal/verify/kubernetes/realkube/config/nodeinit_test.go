// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package config_test

import (
	"bufio"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/programs"
)

// buildNodeinit builds the program as a user would.
func buildNodeinit(t *testing.T) string {
	t.Helper()
	path, err := programs.Program{Package: "./examples/nodeinit"}.Build(t.Context())
	require.NoError(t, err)
	return path
}

func TestCFG10_BuildConfigWatch(t *testing.T) {
	const name = "nodeinit-watch"
	setUpWatch(t, name)
	program, dir := buildNodeinit(t), filepath.Join(t.TempDir(), "config")
	start := func() (cmd *exec.Cmd, next func() string) {
		cmd = command(t, program, kubeconfig(t, server, watcher), name, name, dir, append(threeFlags, "--watch")...)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		return cmd, func() string {
			require.True(t, lines.Scan(), "the program has ended")
			return lines.Text()
		}
	}
	configMap := "/api/v1/namespaces/" + name + "/configmaps/cilium-config"

	cmd, next := start()
	require.Equal(t, `a = "cm" from config-map:nodeinit-watch/cilium-config`, next())
	require.Equal(t, `b = "cr" from cilium-node-config:nodeinit-watch/x`, next())
	require.Contains(t, next(), "config-sources = ")
	require.Contains(t, next(), "config-sources-overrides = ")
	merge(t, configMap, fields{"data": fields{"a": "2"}})
	require.Equal(t, `a = "2" from config-map:nodeinit-watch/cilium-config (was "cm" from config-map:nodeinit-watch/cilium-config)`, next())
	require.Equal(t, "2", readDir(t, dir)["a"], "it is written before it is printed")

	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	merge(t, configMap, fields{"data": fields{"a": "3", "b": nil}})
	cmd, next = start()
	for range 4 {
		next()
	}
	require.Equal(t, "3", readDir(t, dir)["a"])
	require.NoError(t, server.Admin().Delete(t.Context(), nodeConfigsPath(v2, name)+"/x"))
	for text := next(); text != `b is no longer set (was "cr" from cilium-node-config:nodeinit-watch/x)`; {
		text = next()
	}
	require.NotContains(t, readDir(t, dir), "b")

	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), "it ends cleanly on a signal")
}

// command is a build-config run, or one in a pod if there is no kubeconfig.
func command(t testing.TB, program, kubeconfig, namespace, node, dest string, args ...string) *exec.Cmd {
	t.Helper()
	args = append([]string{"build-config", "--node-name", node, "--dest", dest}, args...)
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "CILIUM_K8S_NAMESPACE=" + namespace, "K8S_NODE_NAME=" + node}
	if kubeconfig != "" {
		args = append(args, "--k8s-kubeconfig-path", kubeconfig)
	} else {
		u, err := url.Parse(server.URL)
		require.NoError(t, err)
		env = append(env, "KUBERNETES_SERVICE_HOST="+u.Hostname(), "KUBERNETES_SERVICE_PORT="+u.Port())
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = env
	return cmd
}

var threeFlags = []string{"--source", "config-map", "--source", "cilium-node-config", "--source", "node"}
