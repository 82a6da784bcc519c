// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstorm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

const namespace = "kube-system"

// agent is the account that the manifests of examples/deploy use.
var agent = realkube.ServiceAccount(namespace, "agent")

// nodeObjects is the number of Node objects that the nodes share: each read goes to etcd,
// however many there are.
const nodeObjects = 200

type fields = map[string]any

// plan is the size of a storm.
type plan struct {
	nodes, nodeConfigs int
	over               time.Duration // time in which all nodes boot
	away               time.Duration // how long the API server is away in the outage
	spread             time.Duration // of the nodes' retries; 0 means the default
}

type cluster struct {
	plan
	server     *realkube.Server
	kubeconfig string
}

const role = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: agent}
rules:
- {apiGroups: [""], resources: [configmaps, nodes, namespaces], verbs: [get]}
- {apiGroups: [cilium.io], resources: [ciliumnodeconfigs], verbs: [get, list]}
`

const binding = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: agent}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: agent}
subjects: [{kind: ServiceAccount, namespace: kube-system, name: agent}]
`

func newCluster(tb testing.TB, p plan) *cluster {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context()) // Close ends the server
	server, err := realkube.Start(ctx, realkube.Options{Users: []realkube.User{agent}, NoAudit: true, Log: os.Stderr})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, server.Close()) })
	c := &cluster{plan: p, server: server}
	require.NoError(tb, c.fill(ctx))
	c.kubeconfig, err = server.Kubeconfig(server.Dir(), agent, "")
	require.NoError(tb, err)
	return c
}

// fill creates the objects that the nodes read.
func (c *cluster) fill(ctx context.Context) error {
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	admin := c.server.Admin()
	for path, manifest := range map[string]string{
		rbac + "clusterroles/agent": role, rbac + "clusterrolebindings/agent": binding, realkube.NodeConfigsPath: string(realkube.NodeConfigs("v2", "v2alpha1")),
	} {
		if err := admin.ApplyYAML(ctx, path, []byte(manifest)); err != nil {
			return err
		}
	}
	data := fields{}
	for i := range 144 {
		data[fmt.Sprintf("agent-setting-%03d", i)] = strings.Repeat("v", i%25)
	}
	if err := admin.Create(ctx, "/api/v1/namespaces/"+namespace+"/configmaps", fields{"metadata": fields{"name": "cilium-config"}, "data": data}); err != nil {
		return err
	}
	for _, version := range []string{"v2", "v2alpha1"} {
		if err := admin.WaitServed(ctx, configsPath(version)); err != nil {
			return err
		}
	}
	return errors.Join(parallel(c.nodeConfigs, func(i int) error {
		return admin.Create(ctx, configsPath("v2"), nodeConfig(i))
	}), parallel(nodeObjects, func(i int) error { return c.createNode(ctx, i) }))
}

func configsPath(version string) string {
	return "/apis/cilium.io/" + version + "/namespaces/" + namespace + "/ciliumnodeconfigs"
}

// nodeConfig selects one rack in twenty.
func nodeConfig(i int) fields {
	return fields{"apiVersion": "cilium.io/v2", "kind": "CiliumNodeConfig", "metadata": fields{"name": fmt.Sprintf("config-%05d", i)},
		"spec": fields{
			"nodeSelector": fields{"matchLabels": fields{"rack": fmt.Sprint(i % 20)}},
			"defaults":     fields{"last": fmt.Sprint(i), fmt.Sprintf("key-%d", i): "1"},
		}}
}

func nodeName(i int) string { return fmt.Sprintf("node-%05d", i%nodeObjects) }

func (c *cluster) createNode(ctx context.Context, i int) error {
	object := fields{"metadata": fields{"name": nodeName(i), "labels": fields{"rack": fmt.Sprint(i % 20)},
		"annotations": fields{"config.cilium.io/node": fmt.Sprint(i)}}}
	if err := c.server.Admin().Create(ctx, "/api/v1/nodes", object); err != nil {
		return err
	}
	var images []fields
	for n := range 50 {
		images = append(images, fields{"sizeBytes": 100000000 + n, "names": []string{
			fmt.Sprintf("registry.example.org/platform/component-%02d@sha256:%s", n, strings.Repeat(fmt.Sprintf("%02x", n), 32)),
			fmt.Sprintf("registry.example.org/platform/component-%02d:v1.2.%d", n, n)}})
	}
	return c.server.Admin().Merge(ctx, "/api/v1/nodes/"+nodeName(i)+"/status", fields{"status": fields{"images": images}})
}

// parallel calls f with 0 to n-1, a few at a time.
func parallel(n int, f func(int) error) error {
	var group sync.WaitGroup
	errs := make([]error, n)
	slots := make(chan struct{}, 8)
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			errs[i] = f(i)
			<-slots
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// fairness returns the priority-and-fairness manifests of the deployment examples, by API path.
func fairness(tb testing.TB) map[string]string {
	tb.Helper()
	text, err := os.ReadFile("../../../../../examples/deploy/priority.yaml")
	require.NoError(tb, err)
	found := map[string]string{}
	for manifest := range strings.SplitSeq(string(text), "\n---\n") {
		kind := "prioritylevelconfigurations"
		if strings.Contains(manifest, "kind: FlowSchema") {
			kind = "flowschemas"
		}
		found["/apis/flowcontrol.apiserver.k8s.io/v1/"+kind+"/agent-nodeinit"] = manifest
	}
	require.Len(tb, found, 2)
	return found
}

// withFairness calls f while these manifests are on the API server.
func (c *cluster) withFairness(tb testing.TB, f func()) {
	tb.Helper()
	for path, manifest := range fairness(tb) {
		require.NoError(tb, c.server.Admin().ApplyYAML(tb.Context(), path, []byte(manifest)))
		defer func() { require.NoError(tb, c.server.Admin().Delete(tb.Context(), path)) }()
	}
	f()
}
