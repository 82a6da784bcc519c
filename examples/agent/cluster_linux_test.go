// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/internal/critest"
)

const conflist = "/etc/cni/net.d/10-slipway-agent.conflist"

// clustered are the flags of agent.yaml that need a cluster.
func clustered(kubeconfig string, more ...string) []string {
	return append(more, "--node=n1", "--kubeconfig="+kubeconfig, "--daemonset=kube-system/agent", "--account=agent", "--cni=ptp", "--plugins=/usr/lib/cni")
}

// All pods of a DaemonSet have the same flags, and so the addresses come from the Node.
func TestEachNodeHasAddressesOfItsOwn(t *testing.T) {
	n := bootstraptest.NewNode(t)
	var spec atomic.Value
	spec.Store(`{}`)
	_, _, kubeconfig, _ := serveCluster(t, n, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, strings.Replace(readyNode, `"status"`, `"spec": `+spec.Load().(string)+`, "status"`, 1))
	}))
	cmd, lines := start(t, n, clustered(kubeconfig)...)
	eventually(t, lines, "the error", func() bool {
		status, body, _ := get(n, "brief: true\r\n")
		return status == 503 && strings.Contains(body, "the node n1 has no podCIDRs") && strings.Contains(body, "--allocate-node-cidrs")
	})
	require.False(t, exists(n, conflist))
	spec.Store(`{"podCIDRs": ["10.244.3.0/24", "fd00:3::/64"]}`)
	eventually(t, lines, "health", func() bool { status, _, err := get(n, ""); return err == nil && status == 200 })
	require.Contains(t, read(t, n, conflist), `"ranges":[[{"subnet":"10.244.3.0/24"}],[{"subnet":"fd00:3::/64"}]],"routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0"}]`)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, cmd.Wait())
}

// An agent that ends undoes all that it did to its node or, where that is wrong or may be,
// nothing; then it says so on the node too.
func TestRDY4_AnAgentThatEndsUndoesAllOrNothing(t *testing.T) {
	const gone, refused = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound","details":{"group":"apps","kind":"daemonsets","name":"agent"}}`,
		`{"kind":"Status","apiVersion":"v1","status":"Failure","code":401,"reason":"Unauthorized"}`
	for name, tc := range map[string]struct {
		code      int
		answer    string // about the DaemonSet
		isDeleted bool   // its account, as the watch says
		hasPod    bool
		why       string // nothing is undone; empty: all is
	}{
		"the DaemonSet has gone":                   {code: 404, answer: gone},
		"it has gone, and there is a pod":          {code: 404, answer: gone, hasPod: true, why: "sandboxes need it for their deletion"},
		"its account has gone, too":                {code: 401, answer: refused, isDeleted: true},
		"its account has gone, and there is a pod": {code: 401, answer: refused, isDeleted: true, hasPod: true, why: "sandboxes need it for their deletion"},
		"the credentials are refused":              {code: 401, answer: refused, why: "whether the agent comes back is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			n := bootstraptest.NewNode(t)
			runtime(t, n, "/run/containerd/containerd.sock", critest.Runtime{
				Info: critest.Containerd(nil, "/etc/cni/net.d", "/opt/cni/bin"), Sandboxes: func() []string { return []string{"pod"} },
			})
			deleted := make(chan struct{})
			cluster := http.NewServeMux()
			cluster.HandleFunc("GET /api/v1/nodes/n1", func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w, strings.Replace(readyNode, `"status"`, `"spec": {"podCIDRs": ["10.244.3.0/24"]}, "status"`, 1))
			})
			cluster.HandleFunc("GET /apis/apps/v1/namespaces/kube-system/daemonsets/agent", func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.code)
				fmt.Fprint(w, tc.answer)
			})
			cluster.HandleFunc("GET /api/v1/namespaces/kube-system/serviceaccounts", func(w http.ResponseWriter, r *http.Request) {
				const account = `{"type":%q,"object":{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"agent","namespace":"kube-system"}}}`
				fmt.Fprintf(w, account, "ADDED")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-deleted:
					fmt.Fprintf(w, account, "DELETED")
				case <-r.Context().Done():
				}
			})
			_, _, kubeconfig, _ := serveCluster(t, n, cluster)
			cmd, lines := start(t, n, clustered(kubeconfig, "--interval=1h")...)
			eventually(t, lines, "health", func() bool { status, _, err := get(n, ""); return err == nil && status == 200 })
			if tc.hasPod {
				require.NoError(t, n.Do(context.Background(), func(context.Context) error {
					return errors.Join(os.MkdirAll("/var/lib/cni/results", 0o755), os.WriteFile("/var/lib/cni/results/slipway-agent-pod-eth0",
						[]byte(`{"kind":"cniCacheV1","containerId":"pod","networkName":"slipway-agent","ifName":"eth0"}`), 0o600))
				}))
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
			var said strings.Builder
			for line := range lines {
				said.WriteString(line + "\n")
			}
			err := cmd.Wait()
			require.Equal(t, tc.why != "", exists(n, conflist), said.String())
			if tc.why == "" {
				require.NoError(t, err, said.String())
				require.False(t, exists(n, "/var/lib/slipway"))
				return
			}
			require.Error(t, err)
			require.Equal(t, "1\n", read(t, n, "/proc/sys/net/ipv4/ip_forward"))
			for _, where := range []string{said.String(), read(t, n, "/var/lib/slipway/report.slipway-agent")} {
				require.Contains(t, where, "nothing is undone")
				require.Contains(t, where, "nodeinit uninstall --agent=slipway-agent --any-owner")
				require.Contains(t, where, tc.why)
			}
		})
	}
}
