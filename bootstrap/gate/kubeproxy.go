// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package gate

import (
	"context"
	"time"
)

// chain is one that kube-proxy makes together with its rules. It makes others, such as
// KUBE-SERVICES, earlier; the kubelet makes some too.
type chain struct{ table, name string }

// chains are those of kube-proxy's modes (kubernetes, pkg/proxy): nftables, iptables,
// and ipvs. Those of table nat are in nf_tables or in legacy iptables.
func chains() []chain {
	return []chain{{"kube-proxy", "services"}, {"nat", "KUBE-NODEPORTS"}, {"nat", "KUBE-NODE-PORT"}}
}

// KubeProxy returns a gate that opens when kube-proxy has written its rules into the
// network namespace, in any mode: nftables, iptables or ipvs, with nf_tables or legacy
// iptables, for IPv4 or IPv6. It looks once a second.
func KubeProxy() Gate {
	return Gate{Name: "kube-proxy's rules", Where: []string{"net"}, Every: time.Second, Probe: func(ctx context.Context) (string, error) {
		found, err := kubeProxy(ctx)
		if err != nil || found {
			return "", err
		}
		return "neither nf_tables nor legacy iptables have any, for IPv4 or IPv6", nil
	}}
}
