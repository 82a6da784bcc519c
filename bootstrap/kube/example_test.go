// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/kube"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	configkube "github.com/slipway-dev/slipway/configresolve/kube"
)

// The node is marked ready once the CNI configuration is in place.
func Example() {
	connection := configkube.Connection{Kubeconfig: "/etc/kubernetes/kubelet.conf"}
	config, err := connection.Config()
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := connection.Client()
	if err != nil {
		fmt.Println(err)
		return
	}
	node := kube.Node{
		Client: client.Dynamic, Name: os.Getenv("NODE_NAME"),
		Taint: "node.cilium.io/agent-not-ready", Reason: "CiliumIsUp", Message: "Cilium is running on this node", // as Cilium's agent does
	}
	var cni ledger.Wanter // such as cniinstall.Install
	plan := bootstrap.Plan{
		Host:  hostns.Host{Proc: "/hostproc"},
		Gates: []bootstrap.Step{{Name: "api-server", Gate: kube.APIServer(config)}},
		Steps: []bootstrap.Step{
			{Name: "cni", Wants: cni},
			{Name: "node", After: []string{"cni"}, Action: node},
		},
	}
	report, err := plan.Apply(context.Background())
	fmt.Println(report, err)
}

// An agent stops because its DaemonSet was deleted.
func ExampleDecide() {
	empty := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "worker-1"},
	}})
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	uninstall, reason, err := kube.Decide(ctx, empty, "kube-system", "agent", "worker-1")
	fmt.Println(uninstall, reason, err)
	// Output: true gone <nil>
}
