// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package config_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/kube"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

// agentConfig is a ConfigMap as large as an agent's: 144 keys, 4.4 KB.
func agentConfig() values {
	data := values{}
	for i := range 144 {
		data[fmt.Sprintf("agent-setting-%03d", i)] = strings.Repeat("v", i%25)
	}
	return data
}

// createBusyNode makes a node whose status lists 50 images, as a kubelet reports them.
func createBusyNode(t testing.TB, name string, labels, annotations values) {
	t.Helper()
	createNode(t, name, labels, annotations)
	require.NoError(t, server.Admin().Merge(t.Context(), "/api/v1/nodes/"+name+"/status", fields{"status": fields{"images": realkube.Images()}}))
}

// A node with three sources: its requests, and the bytes on the wire, including handshake and
// headers.
func TestCFG9_CostOfANode(t *testing.T) {
	const name = "cost"
	createNamespace(t, name)
	createConfigMap(t, name, "cilium-config", agentConfig())
	createNodeConfig(t, name, nodeConfig{"x", `{"matchLabels":{"zone":"a"}}`, values{"debug": "true"}})
	createBusyNode(t, name, values{"zone": "a"}, values{"config.cilium.io/debug": "false"})
	whole, err := server.Admin().Get(t.Context(), "/api/v1/nodes/"+name)
	require.NoError(t, err)
	require.Greater(t, len(whole), 11_000, "the node is as large as a kubelet makes it")

	wire := newWire(t, server)
	path, err := realkube.WriteKubeconfig(t.TempDir(), wire.url, server.CAPEM, agent.Token())
	require.NoError(t, err)
	client, userAgent := connect(t, kube.Connection{Kubeconfig: path})
	config, err := configresolve.Resolve(t.Context(), sources(t, client, name, name, three...)...)
	require.NoError(t, err)
	want := agentConfig()
	want["debug"] = "false"
	require.Equal(t, want, maps.Collect(config.All()))

	require.ElementsMatch(t, []string{"get v1 configmaps 200", "list v2 ciliumnodeconfigs 200", "get v1 nodes 200"}, audited(t, userAgent))
	up, down := wire.up.Load(), wire.down.Load()
	t.Logf("3 requests, %d bytes up, %d bytes down, in %d connection; the whole Node is %d bytes", up, down, wire.connections.Load(), len(whole))
	require.Less(t, up+down, int64(20_000))
	require.EqualValues(t, 1, wire.connections.Load())
}
