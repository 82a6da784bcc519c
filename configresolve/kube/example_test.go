// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/configresolve/kube"
)

// An agent's configuration comes from its ConfigMap, the node configs that select its node, and
// the node's annotations.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	client, err := kube.Connection{Kubeconfig: "/etc/kubernetes/kubelet.conf"}.Client()
	if err != nil {
		fmt.Println(err)
		return
	}
	node := os.Getenv("NODE_NAME")
	config, err := configresolve.Resolve(ctx,
		client.ConfigMap("kube-system", "cilium-config"),
		client.NodeConfigs("kube-system", node, kube.Cilium().NodeConfigs...),
		client.Node(node, kube.Cilium().Prefix))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(config.Explain())
}

// A watch keeps a directory up to date, and prints each change and its source.
func ExampleWatch() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	client, err := kube.Connection{Kubeconfig: "/etc/kubernetes/kubelet.conf"}.Client()
	if err != nil {
		fmt.Println(err)
		return
	}
	resolver := configresolve.Resolver{Sources: []configresolve.Source{
		client.ConfigMap("kube-system", "cilium-config"),
		client.Node(os.Getenv("NODE_NAME"), kube.Cilium().Prefix),
	}}
	err = kube.Watch(ctx, resolver, func(u configresolve.Update) error {
		if u.Err != nil {
			fmt.Println(u.Err)
			return nil
		}
		for _, change := range u.Changes {
			fmt.Println(change)
		}
		_, err := configdir.Write(ctx, "/run/agent/config", u.Config)
		return err
	})
	fmt.Println(err)
}
