// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import "github.com/slipway-dev/slipway/configresolve"

// Agent holds the names by which an agent is configured in a cluster.
type Agent struct {
	ConfigMap   string   // the name of its ConfigMap
	NodeConfigs Resource // what selects nodes by their labels
	Prefix      string   // of the keys of a Node's labels and annotations, without the slash
}

// Cilium returns the names of Cilium's agent.
func Cilium() Agent {
	return Agent{
		ConfigMap: "cilium-config",
		NodeConfigs: Resource{
			Group: "cilium.io", Versions: []string{"v2", "v2alpha1"}, Plural: "ciliumnodeconfigs",
			Kind: configresolve.KindNodeConfig,
		},
		Prefix: "config.cilium.io",
	}
}
