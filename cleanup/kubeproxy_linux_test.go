// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cleanup"
)

// neighbours are what others have beside kube-proxy and ip-masq-agent: kube-router, the kubelet,
// the portmap plugin and an administrator. Their names begin alike.
var neighbours = []string{
	"*filter", ":KUBE-ROUTER-INPUT - [0:0]", ":KUBE-ROUTER-FORWARD - [0:0]", ":KUBE-POD-FW-2TEGVVWC2TXSVBXP - [0:0]", ":KUBE-NWPLCY-DEFAULT - [0:0]",
	":KUBE-FIREWALL - [0:0]", ":KUBE-KUBELET-CANARY - [0:0]",
	`-A INPUT -m comment --comment "kube-router netpol - 4IA2OSFRMVNDXBVV" -j KUBE-ROUTER-INPUT`,
	`-A INPUT -j KUBE-FIREWALL`, `-A OUTPUT -j KUBE-FIREWALL`,
	`-A KUBE-FIREWALL -m comment --comment "block incoming localnet connections" -j DROP`,
	`-A FORWARD -m comment --comment "kube-router netpol - TEMCG2JMHZYE7H7T" -j KUBE-ROUTER-FORWARD`,
	`-A KUBE-ROUTER-INPUT -m comment --comment "allow LOCAL TCP traffic to node ports" -p tcp -m addrtype --dst-type LOCAL -m multiport --dports 30000:32767 -j RETURN`,
	`-A KUBE-ROUTER-FORWARD -m set --match-set kube-router-local-pods src -j KUBE-POD-FW-2TEGVVWC2TXSVBXP`,
	`-A KUBE-POD-FW-2TEGVVWC2TXSVBXP -m set --match-set KUBE-SRC-ABCDEFGHIJKLMNOP src -j KUBE-NWPLCY-DEFAULT`,
	`-A FORWARD -m comment --comment "kubernetes forwarding rules, by hand" -j ACCEPT`, "COMMIT",
	"*nat", ":CNI-HOSTPORT-DNAT - [0:0]", ":KUBE-KUBELET-CANARY - [0:0]", ":KUBE-ROUTER-SERVICES - [0:0]", ":MASQ - [0:0]",
	`-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT`, `-A POSTROUTING -j MASQ`, "COMMIT",
	"*mangle", ":KUBE-IPTABLES-HINT - [0:0]", ":KUBE-KUBELET-CANARY - [0:0]", "COMMIT",
}

// kubeProxys are the rules of kube-proxy, in the modes iptables and ipvs.
var kubeProxys = []string{
	"*filter", ":KUBE-SERVICES - [0:0]", ":KUBE-EXTERNAL-SERVICES - [0:0]", ":KUBE-NODEPORTS - [0:0]", ":KUBE-FORWARD - [0:0]", ":KUBE-PROXY-FIREWALL - [0:0]",
	":KUBE-PROXY-CANARY - [0:0]", ":KUBE-NODE-PORT - [0:0]", ":KUBE-IPVS-FILTER - [0:0]", ":KUBE-SOURCE-RANGES-FIREWALL - [0:0]",
	`-I INPUT 1 -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL`,
	`-I FORWARD 2 -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD`,
	`-A OUTPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES`,
	`-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x4000/0x4000 -j ACCEPT`, "COMMIT",
	"*nat", ":KUBE-SERVICES - [0:0]", ":KUBE-POSTROUTING - [0:0]", ":KUBE-MARK-MASQ - [0:0]", ":KUBE-MARK-DROP - [0:0]", ":KUBE-NODEPORTS - [0:0]", ":KUBE-PROXY-CANARY - [0:0]",
	":KUBE-SVC-TCOU7JCQXEZGVUNU - [0:0]", ":KUBE-SEP-ABCDEFGHIJKLMNOP - [0:0]", ":KUBE-EXT-TCOU7JCQXEZGVUNU - [0:0]", ":KUBE-LOAD-BALANCER - [0:0]",
	`-I PREROUTING 1 -m comment --comment "kubernetes service portals" -j KUBE-SERVICES`,
	`-I POSTROUTING 1 -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING`,
	`-A KUBE-SERVICES -m comment --comment "default/x cluster IP" -j KUBE-SVC-TCOU7JCQXEZGVUNU`,
	`-A KUBE-SVC-TCOU7JCQXEZGVUNU -m comment --comment "default/x" -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-ABCDEFGHIJKLMNOP`,
	`-A KUBE-SEP-ABCDEFGHIJKLMNOP -j KUBE-MARK-MASQ`, `-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000`,
	`-A KUBE-LOAD-BALANCER -m set --match-set SET dst,dst -j KUBE-MARK-MASQ`, "COMMIT",
	"*mangle", ":KUBE-PROXY-CANARY - [0:0]", "COMMIT",
}

var ipMasqAgents = []string{
	"*nat", ":IP-MASQ-AGENT - [0:0]", ":IP-MASQ - [0:0]",
	`-I POSTROUTING 1 -m comment --comment "ip-masq-agent: ensure nat POSTROUTING directs all non-LOCAL destination traffic to our custom IP-MASQ-AGENT chain" -m addrtype ! --dst-type LOCAL -j IP-MASQ-AGENT`,
	`-A POSTROUTING -m addrtype ! --dst-type LOCAL -j IP-MASQ`,
	`-A IP-MASQ-AGENT -m comment --comment "ip-masq-agent: local traffic is not subject to MASQUERADE" -j RETURN`,
	`-A IP-MASQ-AGENT -m comment --comment "ip-masq-agent: outbound traffic is subject to MASQUERADE (must be last in chain)" -j MASQUERADE --random-fully`,
	`-A IP-MASQ -j MASQUERADE`, "COMMIT",
}

// What kube-proxy and ip-masq-agent leave goes, in both variants of iptables and in nftables, and
// all that others have stays byte for byte.
func TestCLN12_WhatKubeProxyAndIPMasqAgentLeft(t *testing.T) {
	tools := []string{"iptables-nft", "ip6tables-nft", "iptables-legacy", "ip6tables-legacy"}
	enterNetfilter(t, append(tools, "nft", "ipset")...)
	sight := func() string {
		all := run(t, "ipset", "save") + run(t, "ip", "-o", "link") + run(t, "nft", "list", "tables")
		for _, tool := range tools {
			all += saved(t, tool)
		}
		return all + run(t, "nft", "-a", "list", "table", "ip", "kube-router-ipv4") + run(t, "nft", "-a", "list", "table", "inet", "kube-proxy")
	}
	for tool, set := range map[string]string{"iptables-nft": "", "ip6tables-nft": "inet6:"} {
		family := map[string]string{"": "inet", "inet6:": "inet6"}[set]
		for _, name := range []string{"kube-router-local-pods", "KUBE-SRC-ABCDEFGHIJKLMNOP", "KUBE-DST-ABCDEFGHIJKLMNOP"} {
			run(t, "ipset", "create", set+name, "hash:ip", "family", family)
		}
		theirs := strings.NewReplacer("--match-set ", "--match-set "+set).Replace(strings.Join(neighbours, "\n"))
		rules(t, tool, theirs)
		rules(t, strings.Replace(tool, "-nft", "-legacy", 1), theirs)
	}
	run(t, "nft", "add table ip kube-router-ipv4; add chain ip kube-router-ipv4 KUBE-ROUTER-INPUT { counter; }; add table inet kube-proxy; add chain inet kube-proxy x")
	run(t, "ip", "link", "add", "kube-bridge", "type", "veth", "peer", "name", "kube-ipvs1")
	for _, tool := range tools { // empty built-in chains stay
		rules(t, tool, "*nat", "-A OUTPUT -j RETURN", "COMMIT")
	}
	before := sight()

	for tool, set := range map[string]string{"iptables-nft": "KUBE-CLUSTER-IP", "ip6tables-nft": "KUBE-6-CLUSTER-IP"} {
		family := map[string]string{"KUBE-CLUSTER-IP": "inet", "KUBE-6-CLUSTER-IP": "inet6"}[set]
		run(t, "ipset", "create", set, "hash:ip,port", "family", family)
		for _, tool := range []string{tool, strings.Replace(tool, "-nft", "-legacy", 1)} {
			rules(t, tool, strings.ReplaceAll(strings.Join(kubeProxys, "\n"), " SET ", " "+set+" "))
			rules(t, tool, ipMasqAgents...)
		}
		run(t, "nft", strings.ReplaceAll("add table FAMILY kube-proxy; add chain FAMILY kube-proxy services; add map FAMILY kube-proxy service-ips { type inet_service : verdict; elements = { 80 : goto services }; }",
			"FAMILY", map[string]string{"inet": "ip", "inet6": "ip6"}[family]))
	}
	for _, name := range []string{"KUBE-LOOP-BACK", "KUBE-LOAD-BALANCER-SOURCE-CIDR", "KUBE-IPVS-IPS"} {
		run(t, "ipset", "create", name, "hash:ip")
	}
	run(t, "ip", "link", "add", "kube-ipvs0", "type", "bridge")
	dirty := sight()

	for _, agent := range []string{"kube-proxy", "ip-masq-agent"} {
		c := cleanup.Leftovers{Ownership: exampleOwnership(t, agent), Scope: cleanup.AllState}
		_, err := c.Inventory(t.Context())
		require.NoError(t, err)
		require.Equal(t, dirty, sight())
		apply(t, c)
		dirty = sight()
	}
	require.Equal(t, before, dirty)
}
