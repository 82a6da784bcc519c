// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package config_test

import (
	"bufio"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

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

// line reads one line, or fails when none comes.
func line(t *testing.T, lines <-chan string) string {
	t.Helper()
	select {
	case text, ok := <-lines:
		require.True(t, ok, "the program has ended")
		return text
	case <-time.After(time.Minute):
		require.Fail(t, "no line")
		return ""
	}
}

func lines(r io.Reader) <-chan string {
	out := make(chan string, 100)
	go func() {
		defer close(out)
		for scanner := bufio.NewScanner(r); scanner.Scan(); {
			out <- scanner.Text()
		}
	}()
	return out
}

func TestCFG10_BuildConfigWatch(t *testing.T) {
	const name = "nodeinit-watch"
	setUpWatch(t, name)
	program, dir := buildNodeinit(t), filepath.Join(t.TempDir(), "config")
	start := func() (*exec.Cmd, <-chan string) {
		cmd := command(t, program, kubeconfig(t, server, watcher), name, name, dir, append(threeFlags, "--watch")...)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		return cmd, lines(out)
	}
	configMap := "/api/v1/namespaces/" + name + "/configmaps/cilium-config"

	cmd, out := start()
	require.Equal(t, `a = "cm" from config-map:nodeinit-watch/cilium-config`, line(t, out))
	require.Equal(t, `b = "cr" from cilium-node-config:nodeinit-watch/x`, line(t, out))
	require.Contains(t, line(t, out), "config-sources = ")
	require.Contains(t, line(t, out), "config-sources-overrides = ")
	merge(t, configMap, fields{"data": fields{"a": "2"}})
	require.Equal(t, `a = "2" from config-map:nodeinit-watch/cilium-config (was "cm" from config-map:nodeinit-watch/cilium-config)`, line(t, out))
	require.Equal(t, "2", readDir(t, dir)["a"], "it is written before it is printed")

	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	merge(t, configMap, fields{"data": fields{"a": "3", "b": nil}})
	cmd, out = start()
	for range 4 {
		line(t, out)
	}
	require.Equal(t, "3", readDir(t, dir)["a"])
	require.NoError(t, server.Admin().Delete(t.Context(), nodeConfigsPath(v2, name)+"/x"))
	for text := line(t, out); text != `b is no longer set (was "cr" from cilium-node-config:nodeinit-watch/x)`; {
		text = line(t, out)
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
