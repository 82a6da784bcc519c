// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/bootstrap/cri/critest"
)

// listenOn makes a socket on a node.
func listenOn(t *testing.T, node *bootstraptest.Node, path string) net.Listener {
	t.Helper()
	l, err := node.Listen(path)
	require.NoError(t, err)
	return l
}

func TestOnANodeFromOutside(t *testing.T) {
	node := bootstraptest.NewNode(t)
	_, err := cri.Find(t.Context(), node.Proc())
	require.ErrorIs(t, err, cri.ErrNoRuntime, "the machine's are another host's")

	critest.Serve(t, listenOn(t, node, usual), critest.Runtime{Info: critest.Containerd("/etc/containerd", "/opt/a")})
	found, err := cri.Find(t.Context(), node.Proc())
	require.NoError(t, err)
	s, err := found.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, "/etc/containerd", s.CNI.ConfDir)

	const other = "/var/run/crio/crio.sock"
	critest.Serve(t, listenOn(t, node, other), critest.Runtime{Config: "[crio.network]\nnetwork_dir = \"/etc/crio\"\n"})
	_, err = cri.Find(t.Context(), node.Proc())
	require.ErrorIs(t, err, cri.ErrSeveral)

	start(t, node.Command(program(t, "kubelet", 0o755), "1000", "--container-runtime-endpoint=unix://"+other))
	require.Eventually(t, func() bool { // between fork and exec it has another name
		found, err = cri.Find(t.Context(), node.Proc())
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)
	require.Equal(t, other, found.Path)
	s, err = found.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, "/etc/crio", s.CNI.ConfDir)
}
