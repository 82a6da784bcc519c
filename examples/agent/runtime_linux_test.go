// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/internal/critest"
)

// runtime starts a container runtime on the node.
func runtime(t *testing.T, n *bootstraptest.Node, socket string, handler http.Handler) {
	t.Helper()
	l, err := n.Listen(socket)
	require.NoError(t, err)
	critest.Serve(t, l, handler)
}

// exists reports whether the node has the file.
func exists(n *bootstraptest.Node, path string) bool {
	return n.Do(context.Background(), func(context.Context) error {
		_, err := os.Stat(path)
		return err
	}) == nil
}

var network = []string{"--cni=ptp", "--subnet=10.244.1.0/24", "--plugins=/usr/lib/cni"}

func TestOfSeveralRuntimesOneHasToBeNamed(t *testing.T) {
	n := bootstraptest.NewNode(t)
	runtime(t, n, "/run/containerd/containerd.sock", critest.Runtime{Info: critest.Containerd(nil, "/etc/a/net.d", "/opt/a/bin")})
	runtime(t, n, "/run/crio/crio.sock", critest.Runtime{Config: "[crio.network]\nnetwork_dir = \"/etc/b/net.d/\"\nplugin_dirs = [\"/opt/b/bin\"]\n"})
	cmd, lines := start(t, n, network...)
	eventually(t, lines, "the error", func() bool {
		status, body, _ := get(n, "brief: true\r\n")
		return status == 503 && strings.Contains(body, "give --runtime-endpoint, or --cni-bin-dir and --cni-conf-dir")
	})
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())

	cmd, lines = start(t, n, append(network, "--runtime-endpoint=unix:///run/crio/crio.sock")...)
	eventually(t, lines, "health", func() bool { status, _, err := get(n, ""); return err == nil && status == 200 })
	require.True(t, exists(n, "/etc/b/net.d/10-slipway-agent.conflist"))
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}
