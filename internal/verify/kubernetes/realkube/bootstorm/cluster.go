// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

const namespace = "kube-system"

// agent is whom the manifests of examples/deploy are for.
var agent = realkube.ServiceAccount(namespace, "agent")

// nodeObjects is how many Node objects the nodes share: each read of one goes
// to etcd, however many there are.
const nodeObjects = 200

type fields = map[string]any

type cluster struct {
	server     *realkube.Server
	kubeconfig string
	spread     time.Duration
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

func newCluster(ctx context.Context, p plan) (_ *cluster, err error) {
	c := &cluster{spread: p.spread}
	if c.server, err = realkube.Start(ctx, realkube.Options{Users: []realkube.User{agent}, NoAudit: true, Log: os.Stderr}); err != nil {
		return nil, err
	}
	if err = c.fill(ctx, p); err == nil {
		c.kubeconfig, err = c.server.Kubeconfig(c.server.Dir(), agent, "")
	}
	if err != nil {
		return nil, errors.Join(err, c.server.Close())
	}
	return c, nil
}

// fill makes what the nodes read.
func (c *cluster) fill(ctx context.Context, p plan) error {
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
		if err := admin.WaitServed(ctx, nodeConfigs(version)); err != nil {
			return err
		}
	}
	return errors.Join(parallel(p.nodeConfigs, func(i int) error {
		return admin.Create(ctx, nodeConfigs("v2"), nodeConfig(i))
	}), parallel(nodeObjects, func(i int) error { return c.createNode(ctx, i) }))
}

func nodeConfigs(version string) string {
	return "/apis/cilium.io/" + version + "/namespaces/" + namespace + "/ciliumnodeconfigs"
}

// nodeConfig selects one rack of twenty.
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

const fairness = "/apis/flowcontrol.apiserver.k8s.io/v1/"

// applyFairness applies the manifests that ship with the deployment examples.
func (c *cluster) applyFairness(ctx context.Context, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for path, manifest := range split(string(text)) {
		if err := c.server.Admin().ApplyYAML(ctx, path, []byte(manifest)); err != nil {
			return err
		}
	}
	return nil
}

// split takes the two manifests apart, by their paths in the API.
func split(text string) map[string]string {
	found := map[string]string{}
	for manifest := range strings.SplitSeq(text, "\n---\n") {
		name := "agent-nodeinit"
		if strings.Contains(manifest, "kind: FlowSchema") {
			found[fairness+"flowschemas/"+name] = manifest
		} else {
			found[fairness+"prioritylevelconfigurations/"+name] = manifest
		}
	}
	return found
}

func (c *cluster) removeFairness(ctx context.Context) error {
	var errs []error
	for _, path := range slices.Sorted(maps.Keys(split("kind: FlowSchema\n---\n"))) {
		err := c.server.Admin().Delete(ctx, path)
		var status *realkube.Error
		if !errors.As(err, &status) || status.Code != http.StatusNotFound {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
