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
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/internal/critest"
)

const (
	conflist         = "/etc/cni/net.d/10-slipway-agent.conflist"
	pluginKubeconfig = "/etc/cni/net.d/agent-kubeconfig"
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

// readyNode is a node that the agent has marked.
const readyNode = `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"conditions": [{
	"type": "NetworkUnavailable", "status": "False", "reason": "SlipwayAgentIsUp", "message": "the agent has prepared the node"}]}}`

// serveCluster serves an API server on the node, and returns its URL and a kubeconfig for it.
func serveCluster(t *testing.T, n *bootstraptest.Node, api http.HandlerFunc) (url, kubeconfig string) {
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
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	dir := t.TempDir()
	kubeconfig, token := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(token, []byte("token\n"), 0o600))
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Config", "current-context": "a",
		"clusters": [{"name": "a", "cluster": {"server": %q, "certificate-authority-data": %q}}],
		"users": [{"name": "a", "user": {"tokenFile": %q}}],
		"contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}]}`, server.URL, ca, token), 0o600))
	return server.URL, kubeconfig
}

// clustered are the flags of agent.yaml that need a cluster.
func clustered(kubeconfig string, more ...string) []string {
	return append(more, "--node=n1", "--kubeconfig="+kubeconfig, "--daemonset=kube-system/agent", "--account=agent", "--cni=ptp", "--plugins=/usr/lib/cni")
}

// nodeWith is the node with a spec.
func nodeWith(spec string) string {
	return strings.Replace(readyNode, `"status"`, `"spec": `+spec+`, "status"`, 1)
}

// All pods of a DaemonSet have the same flags, and so the addresses come from the Node.
func TestEachNodeHasAddressesOfItsOwn(t *testing.T) {
	n := bootstraptest.NewNode(t)
	var spec atomic.Value
	spec.Store(`{}`)
	url, kubeconfig := serveCluster(t, n, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, nodeWith(spec.Load().(string))) })
	cmd, lines := start(t, n, clustered(kubeconfig, "--plugin-kubeconfig="+pluginKubeconfig)...)
	failing(t, n, lines, "the node n1 has no podCIDRs: have kube-controller-manager give it some (--allocate-node-cidrs")
	require.False(t, exists(n, conflist))
	spec.Store(`{"podCIDRs": ["10.244.3.0/24", "fd00:3::/64"]}`)
	healthy(t, n, lines)
	require.Contains(t, read(t, n, conflist), `"ranges":[[{"subnet":"10.244.3.0/24"}],[{"subnet":"fd00:3::/64"}]],"routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0"}]`)
	require.Regexp(t, `"server":"`+url+`".*"token":"token"`, read(t, n, pluginKubeconfig))
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, cmd.Wait())
}

// An agent that ends undoes all that it did to its node or, where that is wrong or may be,
// nothing; then it says so on the node too.
func TestRDY4_AnAgentThatEndsUndoesAllOrNothing(t *testing.T) {
	const status, account = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"details":{"group":"apps","kind":"daemonsets","name":"agent"}}`,
		`{"type":%q,"object":{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"agent","namespace":"kube-system"}}}`
	const inUse, notKnown = "sandboxes need it for their deletion", "whether the agent comes back is not known"
	for name, tc := range map[string]struct {
		answer    int  // about the DaemonSet
		isDeleted bool // its account, as the watch says
		hasPod    bool
		why       string // nothing is undone; empty: all is
	}{
		"the DaemonSet has gone":                   {answer: 404},
		"it has gone, and there is a pod":          {answer: 404, hasPod: true, why: inUse},
		"its account has gone, too":                {answer: 401, isDeleted: true},
		"its account has gone, and there is a pod": {answer: 401, isDeleted: true, hasPod: true, why: inUse},
		"the credentials are refused":              {answer: 401, why: notKnown},
	} {
		t.Run(name, func(t *testing.T) {
			n := bootstraptest.NewNode(t)
			runtime(t, n, "/run/containerd/containerd.sock", critest.Runtime{
				Info: critest.Containerd(nil, "/etc/cni/net.d", "/opt/cni/bin"), Sandboxes: func() []string { return []string{"pod"} },
			})
			deleted := make(chan struct{})
			_, kubeconfig := serveCluster(t, n, func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/api/v1/nodes/n1":
					fmt.Fprint(w, nodeWith(`{"podCIDRs": ["10.244.3.0/24"]}`))
				case "/api/v1/namespaces/kube-system/serviceaccounts":
					fmt.Fprintf(w, account, "ADDED")
					_ = http.NewResponseController(w).Flush()
					select {
					case <-deleted:
						fmt.Fprintf(w, account, "DELETED")
					case <-r.Context().Done():
					}
				default:
					w.WriteHeader(tc.answer)
					fmt.Fprintf(w, status, tc.answer)
				}
			})
			cmd, lines := start(t, n, clustered(kubeconfig, "--interval=1h")...)
			healthy(t, n, lines)
			if tc.hasPod {
				write(t, n, "/var/lib/cni/results/slipway-agent-pod-eth0", `{"kind":"cniCacheV1","containerId":"pod","networkName":"slipway-agent","ifName":"eth0"}`)
			}
			if tc.isDeleted {
				close(deleted)
				for line := range lines {
					if strings.Contains(line, "seen=DELETED") {
						break
					}
				}
			}
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			said := ""
			for line := range lines {
				said += line + "\n"
			}
			err := cmd.Wait()
			require.Equal(t, tc.why != "", exists(n, conflist), said)
			require.Equal(t, tc.why != "", exists(n, "/var/lib/slipway"), said)
			require.Equal(t, tc.why != "", err != nil, said)
			if tc.why == "" {
				return
			}
			require.Equal(t, "1\n", read(t, n, "/proc/sys/net/ipv4/ip_forward"))
			for _, where := range []string{said, read(t, n, "/var/lib/slipway/report.slipway-agent")} {
				require.Regexp(t, "nothing is undone .*nodeinit uninstall --agent=slipway-agent --any-owner.*"+tc.why, where)
			}
		})
	}
}
