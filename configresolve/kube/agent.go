// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import "k8s.io/apimachinery/pkg/runtime/schema"

// Agent holds the names of an agent's configuration objects in a cluster, and the
// mark of its own packets.
type Agent struct {
	ConfigMap   string                        // the name of its ConfigMap
	NodeConfigs []schema.GroupVersionResource // versions of the objects that select nodes by their labels
	Prefix      string                        // prefix of the keys of a Node's labels and annotations, without the slash
	Mark        uint32                        // for Connection.Mark; 0: none
}

// Cilium returns the names of Cilium's agent, and the mark with which its own programs
// pass its host firewall since 1.19: that of a proxy's egress (0x0B00,
// pkg/datapath/linux/linux_defaults/mark.go), with the identity of the host, 1, in the
// upper half, as pkg/k8s/hostfirewallbypass makes it. Those mark each packet, which
// stops them where kube-proxy runs in IPVS mode (cilium issue 44464); see
// Connection.Mark.
func Cilium() Agent {
	return Agent{
		ConfigMap: "cilium-config",
		NodeConfigs: []schema.GroupVersionResource{
			ciliumNodeConfigs.WithVersion("v2"), ciliumNodeConfigs.WithVersion("v2alpha1"),
		},
		Prefix: "config.cilium.io",
		Mark:   1<<16 | 0x0B00,
	}
}
