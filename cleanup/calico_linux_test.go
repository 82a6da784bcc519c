// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cleanup"
)

// calicoTwins makes objects of other owners that resemble Calico's.
const calicoTwins = `
ip netns add other
ip link add eth0 type veth peer name eth1
ip link set dev eth0 up; ip link set dev eth1 up
ip addr add 10.9.0.1/24 dev eth0; ip addr add fd09::1/64 dev eth0 nodad
ip link add tunl0 type veth peer name tunl1
ip link set dev tunl0 up; ip link set dev tunl1 up
ip link add calico0 type veth peer name cali01234567
ip link add cali0123456789g type veth peer name califoreign
ip link add vxlan.other type vxlan id 7 dstport 4790
ip route add default via 10.9.0.2 dev eth0
ip route add 10.244.9.0/26 via 10.9.0.3 dev eth0 proto bird
ip route add blackhole 10.244.9.64/26 proto bird
ip route add 10.244.9.128/26 dev tunl0 proto static
ip rule add pref 99 not fwmark 0x400000/0x400000 lookup 1
ip rule add pref 98 not fwmark 0x200000/0x200000 lookup 1
ip route add 10.8.0.0/16 dev eth0 table 1
printf '%s\n' '*filter' ':KUBE-FORWARD -' ':calico-mine -' '-A FORWARD -j KUBE-FORWARD' '-A FORWARD -j calico-mine' '-A FORWARD -m comment --comment "cali:S93hcgKJrXEqnTfs-" -j ACCEPT' COMMIT >/run/foreign.rules
for tool in iptables-nft ip6tables-nft iptables-legacy ip6tables-legacy; do $tool-restore --noflush </run/foreign.rules; done
nft 'add table inet calico; add chain inet calico x; add table ip calico2; add table ip kube-proxy'
ipset create cali-mine hash:ip; ipset create KUBE-CLUSTER-IP hash:ip
mkdir -p /etc/cni/net.d /etc/sysctl.d /opt/cni/bin /var/lib/cni /run/calicox
touch /etc/cni/net.d/87-podman.conflist /etc/cni/net.d/10-calico.conflist.bak /opt/cni/bin/bandwidth /opt/cni/bin/calico2 /run/calicox/x
mkdir -p /sys/fs/bpf/tc/globals /sys/fs/bpf/ctlb /sys/fs/bpf/tcx
bpftool map create /sys/fs/bpf/tc/globals/other_map type hash key 4 value 4 entries 1 name other
bpftool map create /sys/fs/bpf/ctlb/other type hash key 4 value 4 entries 1 name other
`

// calicoLeavings makes the objects that Calico leaves on a node, in any of its data planes.
// examples/ownership/calico.yaml derives them from Calico's sources.
const calicoLeavings = `
ip link add cali0123456789f type veth peer name calif9876543210
ip link set dev cali0123456789f up; ip link set dev calif9876543210 up
ip link add vxlan.calico type vxlan id 4096 dstport 4789
ip link add vxlan-v6.calico type vxlan id 4097 dstport 4791
ip link set dev vxlan.calico up
ip link add bpfin.cali type veth peer name bpfout.cali
ip route add 10.244.0.5 dev cali0123456789f scope link proto boot
ip route add 10.244.1.0/26 via 10.244.1.0 dev vxlan.calico onlink proto 80
ip route add 10.244.2.0/26 via 10.9.0.4 dev eth0 proto 80
ip -6 route add fd00:244::/122 via fd09::4 dev eth0 proto 80
ip route add blackhole 10.244.0.0/26 proto 80
ip route add 10.244.3.0/26 via 10.9.0.5 dev tunl0 onlink proto bird
ip rule add pref 99 not fwmark 0x200000/0x200000 lookup 1
ip -6 rule add pref 99 not fwmark 0x200000/0x200000 lookup 2
printf '%s\n' '*filter' ':cali-FORWARD -' ':cali-tw-cali0123456789f -' ':felix-INPUT -' '-I FORWARD 1 -m comment --comment "cali:wUHhoiAYhphO9Mso" -j cali-FORWARD' '-A FORWARD -m comment --comment "cali:S93hcgKJrXEqnTfs" -m comment --comment "Policy explicitly accepted packet." -m mark --mark 0x10000/0x10000 -j ACCEPT' '-A cali-FORWARD -o cali+ -j cali-tw-cali0123456789f' '-A cali-tw-cali0123456789f -j DROP' COMMIT >/run/ours.rules
for tool in iptables-nft ip6tables-nft iptables-legacy ip6tables-legacy; do $tool-restore --noflush </run/ours.rules; done
rm /run/ours.rules
nft 'add table ip calico; add set ip calico cali40masq-ipam-pools { type ipv4_addr; flags interval; elements = { 10.244.0.0/16 }; }; add chain ip calico nat-POSTROUTING { type nat hook postrouting priority 100; }; add chain ip calico cali-POSTROUTING; add rule ip calico nat-POSTROUTING jump cali-POSTROUTING; add rule ip calico cali-POSTROUTING ip saddr @cali40masq-ipam-pools masquerade; add table ip6 calico; add table arp calico-arp; add chain arp calico-arp filter-OUTPUT { type filter hook output priority 0; }'
ipset create cali40masq-ipam-pools hash:net; ipset create cali60all-hosts-net hash:net family inet6; ipset create cali4t0 hash:ip
mkdir -p /etc/cni/net.d/calico-tls /run/calico/cgroup /run/calico/bpf /var/lib/calico /var/run/calico/endpoint-status
mount -n -t cgroup2 none /run/calico/cgroup
touch /etc/cni/net.d/10-calico.conflist /etc/cni/net.d/calico-kubeconfig /etc/cni/net.d/calico-tls/etcd-key /opt/cni/bin/calico /opt/cni/bin/calico-ipam /var/lib/calico/nodename /var/lib/calico/mtu /run/calico/bird.ctl
mkdir -p /sys/fs/bpf/calico/xdp
bpftool map create /sys/fs/bpf/calico/xdp/eth0_ipv4_v1_blacklist type lpm_trie key 8 value 4 entries 1 name x flags 1
bpftool map create /sys/fs/bpf/tc/globals/cali_v4_ct3 type hash key 4 value 4 entries 1 name cali_v4_ct3
bpftool map create /sys/fs/bpf/ctlb/calico_connect_v4 type hash key 4 value 4 entries 1 name cali_ctlb
`

// Calico's ownership is a file that users can copy. On a node that Calico has left, exactly its
// own objects are removed.
func TestCLN6_NodeThatCalicoLeft(t *testing.T) {
	own := exampleOwnership(t, "calico")
	onNode(t, func(ctx context.Context) {
		noAddresses(t)
		run(t, "sh", "-euc", calicoTwins)
		clsact(t, "eth0")
		filter(t, "eth0", ingress, 1, "foreign", program(t, ebpf.SchedCLS, "foreign"))
		waitFor(t, "local fd09::1 dev eth0", "ip", "-6", "route", "show", "table", "local")
		waitForLinks(t)
		clean := sightOf(t)

		run(t, "sh", "-euc", calicoLeavings)
		preamble := program(t, ebpf.SchedCLS, "cali_tc_preambl")
		filter(t, "eth0", ingress, 2, "cali_tc_preambl:[7]", preamble)
		setXDP(t, "eth0", program(t, ebpf.XDP, "cali_xdp_preamb"), 0)
		waitForLinks(t)
		dirty := sightOf(t)

		c := cleanup.Leftovers{Ownership: own, Scope: cleanup.AllState, CgroupRoot: "/sys/fs/cgroup"}
		inv, err := c.Inventory(ctx)
		require.NoError(t, err)
		requireSame(t, dirty, sightOf(t)) // listing changes nothing
		listed := strings.Join(objects(inv.Items), "\n") + "\n"
		for _, want := range []string{
			"tc filter eth0 ingress cali_tc_preambl", "xdp program eth0 ", "link cali0123456789f\n", "link vxlan.calico\n", "link vxlan-v6.calico\n", "link bpfin.cali\n",
			"route 10.244.2.0/26 via 10.9.0.4 dev eth0 table 254\n", "route fd00:244::/122 ", "route blackhole 10.244.0.0/26 ", "route 10.244.3.0/26 via 10.9.0.5 dev tunl0 ",
			"ip rule IPv4 99: not fwmark 0x200000/0x200000 lookup 1\n", "ip rule IPv6 99: not fwmark 0x200000/0x200000 lookup 2\n",
			"iptables-nft ip filter rule FORWARD -> cali-FORWARD\n", "iptables-legacy ip6 filter chain felix-INPUT\n",
			"iptables-nft ip filter rule FORWARD \"cali:S93hcgKJrXEqnTfs\"\n", "iptables-legacy ip6 filter rule FORWARD \"cali:S93hcgKJrXEqnTfs\"\n",
			"nftables table ip calico\n", "nftables table ip6 calico\n", "nftables table arp calico-arp\n",
			"ipset cali40masq-ipam-pools\n", "ipset cali60all-hosts-net\n", "ipset cali4t0\n",
			"pin /sys/fs/bpf/calico/xdp/eth0_ipv4_v1_blacklist\n", "pin /sys/fs/bpf/tc/globals/cali_v4_ct3\n", "pin /sys/fs/bpf/ctlb/calico_connect_v4\n",
			"mount /run/calico/cgroup\n", "state directory /var/run/calico\n", "state directory /var/lib/calico\n", "state directory /etc/cni/net.d/calico-tls\n",
			"file /etc/cni/net.d/10-calico.conflist\n", "file /opt/cni/bin/calico\n",
		} {
			require.Contains(t, listed, want)
		}
		require.NoError(t, c.Remove(ctx, inv.Items))
		requireSame(t, clean, sightOf(t))

		inv2, err := c.Inventory(ctx)
		require.NoError(t, err)
		require.Empty(t, objects(inv2.Items))
		require.NoError(t, c.Remove(ctx, inv.Items), "already gone is success")
		requireSame(t, clean, sightOf(t))
	})
}
