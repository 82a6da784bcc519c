// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
)

// readyNode is a node that the agent has marked.
const readyNode = `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"conditions": [{
	"type": "NetworkUnavailable", "status": "False", "reason": "SlipwayAgentIsUp", "message": "the agent has prepared the node"}]}}`

// serveCluster serves an API server on the node, and returns its URL and certificate, and a
// kubeconfig for it with the file of a token.
func serveCluster(t *testing.T, n *bootstraptest.Node, api http.Handler) (url, ca, kubeconfig, token string) {
	t.Helper()
	var listener net.Listener
	require.NoError(t, n.Do(context.Background(), func(context.Context) (err error) {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	}))
	cluster := http.NewServeMux()
	cluster.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	cluster.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		api.ServeHTTP(w, r)
	})
	server := httptest.NewUnstartedServer(cluster)
	require.NoError(t, server.Listener.Close())
	server.Listener = listener
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections() // those of watches
		server.Close()
	})
	ca = base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	dir := t.TempDir()
	kubeconfig, token = filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(token, []byte("token\n"), 0o600))
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Config", "current-context": "a",
		"clusters": [{"name": "a", "cluster": {"server": %q, "certificate-authority-data": %q}}],
		"users": [{"name": "a", "user": {"tokenFile": %q}}],
		"contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}]}`, server.URL, ca, token), 0o600))
	return server.URL, ca, kubeconfig, token
}

// The kubeconfig for plugins holds the agent's current token, even after another program has
// edited it, and is never stored in the ledger.
func TestHP3_PluginsGetAKubeconfig(t *testing.T) {
	const path, older, state = "/etc/cni/net.d/agent-kubeconfig", "token of an older installation", "/var/slipway"
	n := bootstraptest.NewNode(t)
	url, ca, kubeconfig, token := serveCluster(t, n, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, readyNode) }))
	issue := func(text string) { require.NoError(t, os.WriteFile(token, []byte(text+"\n"), 0o600)) }
	write := func(text string) {
		require.NoError(t, n.Do(context.Background(), func(context.Context) error {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			return os.WriteFile(path, []byte(text), 0o644)
		}))
	}
	issue("token one")
	write(older)
	cmd, lines := start(t, n, "--node", "n1", "--kubeconfig", kubeconfig, "--plugin-kubeconfig", path, "--state-dir", state)
	has := func(text string) func() bool {
		return func() bool { return strings.Contains(read(t, n, path), `"token":"`+text+`"`) }
	}
	eventually(t, lines, "the first token", has("token one"))
	require.Contains(t, read(t, n, path), `"server":"`+url+`"`)
	require.Contains(t, read(t, n, path), ca)
	issue("token two")
	eventually(t, lines, "the second token", has("token two"))
	write("edited")
	eventually(t, lines, "the token again", has("token two"))
	require.NotContains(t, read(t, n, state+"/ledger"), "token of an older")
	require.NotContains(t, read(t, n, state+"/ledger"), "token two")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}
