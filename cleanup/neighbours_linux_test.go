// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"strings"
	"testing"

	"github.com/cilium/ebpf"
)

// The tables of this file have names and rules of programs that share nodes with Cilium, or
// were there before it, as their sources of August 2026 write them. None is Cilium's. Where a
// kernel may lack a kind of link, a veth stands in.

var neighbourLinks = []string{
	"link add dev cali0a1b2c3d4e5 type veth peer name p0", // Calico: cni-plugin/pkg/plugin/plugin.go
	"link add dev wireguard.cali type veth peer name p1",  // felix/config/config_params.go
	"link add dev antrea-gw0 type veth peer name p2",      // Antrea: cmd/antrea-agent/options.go
	"link add dev antrea-egress0 type veth peer name p3",  // pkg/agent/controller/egress/egress_controller.go
	"link add dev ovn0 type veth peer name p4",            // kube-ovn: pkg/util/const.go
	"link add dev 0a1b2c3d4e5f_h type veth peer name p5",  // pkg/daemon/ovs_linux.go
	"link add dev docker0 type bridge",                    // Docker: daemon/libnetwork/drivers/bridge/interface_linux.go
	"link add dev vethc0ffee0 type veth peer name p6",     // bridge_linux.go
	"link add dev podman0 type bridge",                    // podman: container-libs, common/libnetwork/netavark
	"link add dev virbr0 type bridge",                     // libvirt: src/network/default.xml.in
	"link add dev azv768e8de type veth peer name p7",      // Azure CNI: network/endpoint_linux.go
	"link add dev eni0a1b2c3d4e5 type veth peer name p8",  // EKS: amazon-vpc-cni-k8s, cmd/aws-vpc-cni/main.go
	"link add dev vlan.eth.1 type veth peer name p9",      // cmd/routed-eni-cni-plugin/driver/driver.go
	"link set dev eni0a1b2c3d4e5 addrgenmode none", "link set dev eni0a1b2c3d4e5 up",
}

var neighbourRoutes = []string{
	"-4 route add blackhole 10.244.9.0/26 proto 80", "-4 route add blackhole 10.244.9.64/32 proto 80", // Calico: felix/dataplane/linux/dataplanedefs
	"-4 route add local default dev lo table 100", "-6 route add local default dev lo table 100", // Istio ambient: cni/pkg/iptables/iptables_linux.go
	"-4 route add default via 10.9.0.2 dev eth0 onlink table 101", // Antrea's egress: pkg/agent/types/net.go, pkg/agent/route/route_linux.go
	"-4 route add throw 10.44.0.0/16 table 52",                    // Tailscale: wgengine/router/osrouter/router_linux.go
	"-4 route add default via 10.9.0.2 dev eth0 table 1",          // GKE: netd, pkg/config/config_policy_routing.go
	"-4 route add local default dev lo table 78",                  // kube-router: pkg/controllers/proxy/linux_networking.go
	"-4 route add 10.44.0.9 dev eni0a1b2c3d4e5 scope link",        // EKS: cmd/routed-eni-cni-plugin/driver/driver.go
}

// Rules that a library adds have no protocol.
var neighbourRules = []string{
	// Tailscale: baseIPRules in wgengine/router/osrouter/router_linux.go.
	"-4 rule add pref 5210 fwmark 0x80000/0xff0000 lookup main proto 0", "-4 rule add pref 5230 fwmark 0x80000/0xff0000 lookup default proto 0",
	"-4 rule add pref 5250 fwmark 0x80000/0xff0000 unreachable proto 0", "-6 rule add pref 5270 lookup 52 proto 0",
	// Calico with WireGuard: felix/wireguard/wireguard.go.
	"-4 rule add pref 99 not fwmark 0x100000/0x100000 lookup 1 proto 0",
	// Istio ambient: cni/pkg/iptables/iptables_linux.go.
	"-4 rule add pref 32764 fwmark 0x111/0xfff lookup 100 proto 0", "-6 rule add pref 32764 fwmark 0x111/0xfff lookup 100 proto 0",
	// GKE: netd, pkg/config/config_policy_routing.go.
	"-4 rule add pref 70 to 169.254.0.0/16 lookup local proto 0", "-4 rule add pref 74 fwmark 0x4000/0x4000 lookup main proto 0",
	"-4 rule add pref 75 iif lo lookup main proto 0", "-4 rule add pref 76 not iif eth0 lookup 1 proto 0",
	// EKS: amazon-vpc-cni-k8s, pkg/networkutils/network.go; Cilium in ENI mode has 20 and 32765 too.
	"-4 rule add pref 10 iif vlan.eth.1 lookup 101 proto 0", "-4 rule add pref 20 lookup local proto 0", "-4 rule add pref 1 from 10.0.0.7 lookup 11 proto 0",
	"-4 rule add pref 1535 to 10.44.0.0/16 lookup main proto 0", "-4 rule add pref 32765 from 10.0.0.7 lookup 11 proto 0",
	// Antrea's egress: generateRule in pkg/agent/route/route_linux.go.
	"-4 rule add pref 32763 fwmark 0x1/0xff lookup 101 proto 0",
}

// Of these programs, only Docker writes to xfrm: daemon/libnetwork/drivers/overlay/encryption.go.
var neighbourXFRM = []string{
	"xfrm policy add src 10.1.0.3/32 dst 10.1.0.4/32 proto udp dport 4789 dir out mark 0xd0c4e3 mask 0xffffffff tmpl src 10.1.0.3 dst 10.1.0.4 proto esp spi 0x11 reqid 13681891 mode transport",
	"xfrm state allocspi src 10.1.0.3 dst 10.1.0.4 proto esp reqid 13681891 mode transport min 0x11 max 0x11",
	"xfrm state allocspi src 10.1.0.4 dst 10.1.0.3 proto esp reqid 13681891 mode transport min 0x12 max 0x12",
}

var neighbourNetNS = []string{
	"netns add netns-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9", // podman: container-libs, common/pkg/netns/netns_linux.go
	"netns add 0a1b2c3d-4e5f-4071-8293-a4b5c6d7e8f9",       // CRI-O: internal/config/nsmgr/nsmgr_linux.go
}

// neighbourFilters are link, direction, the filter's name and the program's.
var neighbourFilters = []string{
	"cali0a1b2c3d4e5 ingress cali_tc_preambl cali_tc_preambl", "cali0a1b2c3d4e5 egress cali_tc_preambl cali_tc_preambl", // Calico: felix/bpf/tc/attach.go
	"eni0a1b2c3d4e5 ingress handle_egress handle_egress", "eni0a1b2c3d4e5 egress handle_ingress handle_ingress", // EKS: aws-network-policy-agent, pkg/ebpf/bpf_client.go
	"azv768e8de ingress ipv6_hp_ingress linklocal_to_gu", "azv768e8de egress ipv6_hp_egress gua_to_linkloca", // Azure CNI: bpf-prog/ipv6-hp-bpf
}

var neighbourChains = []string{
	"*filter",
	":cali-FORWARD - [0:0]", `-A FORWARD -m comment --comment "cali:wUHhoiAYhphO9Mso" -j cali-FORWARD`, // Calico: felix/rules/rule_defs.go
	":ANTREA-FORWARD - [0:0]", `-A FORWARD -m comment --comment "Antrea: jump to Antrea forwarding rules" -j ANTREA-FORWARD`, // pkg/agent/route/route_linux.go
	":ts-forward - [0:0]", "-A FORWARD -j ts-forward", // Tailscale: util/linuxfw/iptables_runner.go
	":DOCKER-USER - [0:0]", "-A FORWARD -j DOCKER-USER", ":DOCKER-FORWARD - [0:0]", "-A FORWARD -j DOCKER-FORWARD", // daemon/libnetwork/drivers/bridge/internal/iptabler
	":LIBVIRT_FWX - [0:0]", "-A FORWARD -j LIBVIRT_FWX", "-A LIBVIRT_FWX -i virbr0 -o virbr0 -j ACCEPT", // src/network/network_iptables.c
	":AZURE-NPM - [0:0]", "-A FORWARD -j AZURE-NPM", // npm/util/const.go
	":KUBE-ROUTER-FORWARD - [0:0]", "-A FORWARD -j KUBE-ROUTER-FORWARD", // pkg/controllers/netpol/network_policy_controller.go
	"COMMIT",
	"*nat",
	":OVN-PREROUTING - [0:0]", `-A PREROUTING -m comment --comment "kube-ovn prerouting rules" -j OVN-PREROUTING`, // pkg/util/const.go
	":ISTIO_POSTRT - [0:0]", "-A POSTROUTING -j ISTIO_POSTRT", // cni/pkg/iptables/iptables.go
	":SWIFT-POSTROUTING - [0:0]", "-A POSTROUTING -j SWIFT-POSTROUTING", // Azure CNI: cns/restserver/internalapi_linux.go
	"COMMIT",
	"*mangle",
	":GCP-PREROUTING - [0:0]", `-A PREROUTING -m comment --comment "redirect all traffic to GCP-PREROUTING chain" -j GCP-PREROUTING`, // netd
	"COMMIT",
}

var neighbourTables = []string{
	"add table inet netavark; add chain inet netavark NETAVARK-HOSTPORT-DNAT",         // podman: netavark, src/firewall/nft.rs
	"add table ip docker-bridges; add chain ip docker-bridges filter-FORWARD",         // Docker: internal/nftabler
	"add table inet istio-ambient-nat; add chain inet istio-ambient-nat istio-output", // cni/pkg/nftables/nftables.go
	"add table ip kube-router-filter-ipv4",                                            // pkg/controllers/netpol/npc_nftables.go
	"add table ip libvirt_network; add chain ip libvirt_network guest_cross",          // src/network/network_nftables.c
}

var neighbourSets = []string{
	"cali40masq-ipam-pools hash:net", "cali40this-host hash:ip", // Calico: felix/rules/rule_defs.go
	"ANTREA-POD-IP hash:net", "ANTREA-NODEPORT-IP hash:ip,port", // pkg/agent/route/route_linux.go
	"ovn40subnets hash:net", "ovn40services hash:net", // kube-ovn: pkg/daemon/gateway_linux.go
	"istio-inpod-probes-v4 hash:ip", // cni/pkg/config/config.go, cni/pkg/ipset/ipset.go
	"kube-router-local-pods hash:ip",
}

var neighbourPins = []string{
	"tc/globals/cali_v4_ct4", "tc/globals/cali_jump_ing2", "tc/globals/cali_progs_egr2", "tcx/eth0_ingress", // Calico: felix/bpf/bpfdefs/defs.go and the maps' version
	"globals/aws/maps/global_aws_conntrack_map", "globals/aws/maps/global_policy_events", // EKS: aws-network-policy-agent, pkg/ebpf/bpf_client.go
	"globals/aws/programs/coredns-5d78c9869d-kube-system_handle_ingress", // pkg/utils/utils.go
}

// neighbours makes all of these on a node that has eth0 with an address.
func neighbours(t *testing.T) {
	t.Helper()
	for _, commands := range [][]string{neighbourLinks, neighbourRoutes, neighbourRules, neighbourXFRM, neighbourNetNS} {
		ip(t, commands...)
	}
	hooks := map[string]uint32{"ingress": ingress, "egress": egress}
	for i, row := range neighbourFilters {
		f := strings.Fields(row)
		if i%2 == 0 {
			clsact(t, f[0])
		}
		filter(t, f[0], hooks[f[1]], 1, f[2], program(t, ebpf.SchedCLS, f[3]))
	}
	for _, tool := range []string{"iptables-nft", "ip6tables-nft", "iptables-legacy", "ip6tables-legacy"} {
		rules(t, tool, neighbourChains...)
	}
	for _, row := range neighbourTables {
		run(t, "nft", row)
	}
	for _, row := range neighbourSets {
		run(t, append([]string{"ipset", "create"}, strings.Fields(row)...)...)
	}
	for _, row := range neighbourPins {
		pinAt(t, array(t, "x"), "/sys/fs/bpf", row)
	}
}
