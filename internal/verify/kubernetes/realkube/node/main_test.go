// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	configkube "github.com/slipway-dev/slipway/configresolve/kube"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

type fields = map[string]any

const accounts = "/api/v1/namespaces/kube-system/serviceaccounts"

// server is shared by the tests; each test has its own nodes. It holds the objects of
// agent.yaml in examples/deploy, and those of the component report for a separate account.
var server *realkube.Server

var denied = realkube.ServiceAccount("kube-system", "denied") // has no rights

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if server, err = realkube.Start(context.Background(), realkube.Options{Users: []realkube.User{denied}, Log: os.Stderr}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer server.Close()
	if err := server.Admin().Create(context.Background(), accounts, fields{"metadata": fields{"name": "reporter"}}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := deploy(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

const deployDir = "../../../../../examples/deploy/"

// deploy applies the agent's manifest, and the report's for the account reporter.
func deploy(ctx context.Context) error {
	agents, err := realkube.Manifest(deployDir + "agent.yaml")
	if err != nil {
		return err
	}
	reports, err := realkube.Manifest(deployDir+"report/rbac.yaml", "name: agent\n", "name: reporter\n", "kube-system:agent", "kube-system:reporter")
	for _, d := range append(agents, reports...) {
		err = errors.Join(err, server.Admin().ApplyYAML(ctx, d.Path, []byte(d.Text)))
	}
	return err
}

// config is the connection of a token's holder.
func config(t testing.TB, token string) *rest.Config {
	t.Helper()
	path, err := realkube.WriteKubeconfig(t.TempDir(), server.URL, server.CAPEM, token)
	require.NoError(t, err)
	c, err := configkube.Connection{Kubeconfig: path, Spread: time.Second}.Config()
	require.NoError(t, err)
	return c
}

func client(t testing.TB, token string) dynamic.Interface {
	t.Helper()
	d, err := dynamic.NewForConfig(config(t, token))
	require.NoError(t, err)
	return d
}

func admin(t testing.TB) dynamic.Interface { return client(t, realkube.Admin.Token()) }

// agentOn returns the agent pod's token on the node, as the kubelet gets it.
func agentOn(t testing.TB, node string) string {
	t.Helper()
	return tokenOn(t, "agent", node)
}

// tokenOn returns the token of an account's pod on the node.
func tokenOn(t testing.TB, account, node string) string {
	t.Helper()
	create(t, "/api/v1/namespaces/kube-system/pods", fields{
		"metadata": fields{"name": account + "-" + node},
		"spec":     fields{"serviceAccountName": account, "nodeName": node, "containers": []any{fields{"name": "agent", "image": "agent"}}},
	})
	return tokenOf(t, account, fields{"boundObjectRef": fields{"apiVersion": "v1", "kind": "Pod", "name": account + "-" + node}})
}

// tokenOf returns an account's token, which is bound to no pod unless spec says so.
func tokenOf(t testing.TB, account string, spec fields) string {
	t.Helper()
	request, err := json.Marshal(fields{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
	require.NoError(t, err)
	answer, err := server.Admin().Do(t.Context(), http.MethodPost, accounts+"/"+account+"/token", "application/json", request)
	require.NoError(t, err)
	var token struct{ Status struct{ Token string } }
	require.NoError(t, json.Unmarshal(answer, &token))
	return token.Status.Token
}

func create(t testing.TB, path string, object fields) {
	t.Helper()
	require.NoError(t, server.Admin().Create(t.Context(), path, object))
}

func createNode(t testing.TB, name string, labels fields, taints ...any) {
	t.Helper()
	create(t, "/api/v1/nodes", fields{"metadata": fields{"name": name, "labels": labels}, "spec": fields{"taints": taints}})
	untaint(t, name, taints...)
}

// untaint sets exactly these taints: the API server adds another to a new node.
func untaint(t testing.TB, name string, taints ...any) {
	t.Helper()
	require.NoError(t, server.Admin().Merge(t.Context(), "/api/v1/nodes/"+name, fields{"spec": fields{"taints": taints}}))
}

func taint(key, value, effect string) fields {
	return fields{"key": key, "value": value, "effect": effect}
}

func getNode(t testing.TB, name string) *unstructured.Unstructured {
	t.Helper()
	raw, err := server.Admin().Get(t.Context(), "/api/v1/nodes/"+name)
	require.NoError(t, err)
	node := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal(raw, &node.Object))
	return node
}

func taintsOf(t testing.TB, name string) (keys []string) {
	t.Helper()
	all, _, err := unstructured.NestedSlice(getNode(t, name).Object, "spec", "taints")
	require.NoError(t, err)
	for _, one := range all {
		keys = append(keys, one.(fields)["key"].(string))
	}
	return keys
}

// eventually waits for state that the API server learns through its own watch: rules, policies,
// accounts.
func eventually(t testing.TB, ask func(context.Context) error) {
	t.Helper()
	require.NoError(t, realkube.Eventually(t.Context(), ask), "after a minute")
}
