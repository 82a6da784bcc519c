// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

func requireTools(t testing.TB, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			testns.Skip(t, tool+" is not installed")
		}
	}
}

// twinPackets is the value in a foreign map, which identifies it.
const twinPackets = uint32(4711)

func pinnedValue(t testing.TB) (value uint32) {
	t.Helper()
	m, err := ebpf.LoadPinnedMap("/sys/fs/bpf/other/map", nil)
	require.NoError(t, err)
	defer m.Close()
	require.NoError(t, m.Lookup(uint32(0), &value))
	return value
}

// pinned pins a bpf_link, as an agent does to let it outlive the process, and closes it.
func pinned(t testing.TB, l link.Link, path string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(path[:strings.LastIndex(path, "/")], 0o700))
	require.NoError(t, l.Pin(path))
	require.NoError(t, l.Close())
}

// leftovers returns one of each kind that this kernel supports.
func leftovers(t *testing.T) []leftover {
	list := slices.DeleteFunc(programLeftovers(), func(l leftover) bool { return strings.HasPrefix(l.kind, "tcx") && !hasTCX(t) })
	list = append(list, netLeftovers()...)
	list = append(list, netfilterLeftovers()...)
	list = append(list, fileLeftovers()...)
	if name := "lxc0c0ffee0ffee"; netkit(t, name, "lxcpeer") {
		run(t, "ip", "link", "del", name)
		list = append(list, leftover{
			"netkit with a program", "netkit program lxc0c0ffee0ffee", true,
			func(t *testing.T) {
				netkit(t, "nk0", "nk1")
				netkitLink(t, "nk0", ebpf.AttachNetkitPrimary, program(t, ebpf.SchedCLS, "foreign"))
			},
			func(t *testing.T) {
				netkit(t, name, "lxcpeer")
				netkitLink(t, name, ebpf.AttachNetkitPeer, program(t, ebpf.SchedCLS, "cil_from_container"))
			},
		})
	}
	return list
}

// programLeftovers are programs and pins. The first one makes the node's cards: eth0 to eth3,
// and x0 to x5 for XDP.
func programLeftovers() []leftover {
	cls := func(t *testing.T, name string, use ...*ebpf.Map) *ebpf.Program {
		return program(t, ebpf.SchedCLS, name, use...)
	}
	list := []leftover{
		{"tc filter on clsact ingress", "tc filter eth0 ingress cil_from_netdev", true, func(t *testing.T) {
			for _, pair := range [][2]string{{"eth0", "eth1"}, {"eth2", "eth3"}, {"x0", "x1"}, {"x2", "x3"}, {"x4", "x5"}} {
				veth(t, pair[0], pair[1])
				run(t, "ip", "link", "set", "dev", pair[0], "addrgenmode", "none")
				run(t, "ip", "link", "set", "dev", pair[1], "addrgenmode", "none")
			}
			clsact(t, "eth0")
			filter(t, "eth0", ingress, 7, "foreign", cls(t, "foreign"))
			run(t, "tc", "filter", "add", "dev", "eth0", "ingress", "prio", "9", "protocol", "ip", "u32", "match", "u32", "0", "0")
		}, func(t *testing.T) { filter(t, "eth0", ingress, 1, "", cls(t, "cil_from_netdev")) }},
		{"tc filter on clsact egress", "tc filter eth0 egress cil_to_netdev", true,
			func(t *testing.T) { filter(t, "eth0", egress, 7, "foreign", cls(t, "foreign")) },
			func(t *testing.T) { filter(t, "eth0", egress, 1, "", cls(t, "cil_to_netdev")) }},
		{"tc filter of an old version, alone on its clsact", "clsact qdisc eth2", true, nil, func(t *testing.T) {
			clsact(t, "eth2")
			filter(t, "eth2", ingress, 1, "bpf_netdev_eth2.o:[from-netdev]", cls(t, ""))
		}},
		{"tc filter known by a pinned map", "tc filter eth1 ingress nameless", true, func(t *testing.T) {
			clsact(t, "eth1")
			foreign := array(t, "foreign")
			require.NoError(t, foreign.Put(uint32(0), twinPackets))
			pinAt(t, foreign, "/sys/fs/bpf/other/map")
			filter(t, "eth1", ingress, 7, "", cls(t, "foreign_map", foreign))
		}, func(t *testing.T) {
			m := array(t, "calls")
			pinAt(t, m, "/sys/fs/bpf/tc/globals/cilium_calls_1")
			filter(t, "eth1", ingress, 1, "", cls(t, "nameless", m))
		}},
		{"tcx by a pinned bpf_link", "tcx program eth0 ingress cil_from_netdev", true,
			func(t *testing.T) { tcxLink(t, "eth0", ebpf.AttachTCXIngress, cls(t, "foreign")) },
			func(t *testing.T) {
				pinned(t, tcxLink(t, "eth0", ebpf.AttachTCXIngress, cls(t, "cil_from_netdev")), "/sys/fs/bpf/cilium/devices/eth0/links/cil_from_netdev")
			}},
		{"tcx by PROG_ATTACH", "tcx program eth0 egress cil_to_netdev", true,
			func(t *testing.T) { tcxAttach(t, "eth0", ebpf.AttachTCXEgress, cls(t, "foreign")) },
			func(t *testing.T) { tcxAttach(t, "eth0", ebpf.AttachTCXEgress, cls(t, "cil_to_netdev")) }},
		{"generic XDP", "xdp program x0 cil_xdp_entry", true,
			func(t *testing.T) { setXDP(t, "x1", program(t, ebpf.XDP, "foreign"), unix.XDP_FLAGS_SKB_MODE) },
			func(t *testing.T) { setXDP(t, "x0", program(t, ebpf.XDP, "cil_xdp_entry"), unix.XDP_FLAGS_SKB_MODE) }},
		{"native XDP", "xdp program x2 cil_xdp_entry", true,
			func(t *testing.T) { setXDP(t, "x3", program(t, ebpf.XDP, "foreign"), unix.XDP_FLAGS_DRV_MODE) },
			func(t *testing.T) { setXDP(t, "x2", program(t, ebpf.XDP, "cil_xdp_entry"), unix.XDP_FLAGS_DRV_MODE) }},
		{"XDP by a pinned bpf_link", "xdp program x4 cil_xdp_entry", true,
			func(t *testing.T) { xdpLink(t, "x5", program(t, ebpf.XDP, "foreign"), 0) },
			func(t *testing.T) {
				pinned(t, xdpLink(t, "x4", program(t, ebpf.XDP, "cil_xdp_entry"), 0), "/sys/fs/bpf/cilium/devices/x4/links/cil_xdp_entry")
			}},
		{"pins in nested directories", "pin /sys/fs/bpf/cilium/a/b/c/map", true,
			func(t *testing.T) { pinAt(t, array(t, "x"), "/sys/fs/bpf/cilium-foreign/a/map") },
			func(t *testing.T) { pinAt(t, array(t, "x"), "/sys/fs/bpf/cilium/a/b/c/map") }},
		{"pinned program", "pin /sys/fs/bpf/cilium/prog", true,
			func(t *testing.T) { pinAt(t, cls(t, "foreign"), "/sys/fs/bpf/other/prog") },
			func(t *testing.T) { pinAt(t, cls(t, "cil_to_netdev"), "/sys/fs/bpf/cilium/prog") }},
		{"map pins in tc/globals", "pin /sys/fs/bpf/tc/globals/cilium_ct4_global", true,
			func(t *testing.T) { pinAt(t, array(t, "x"), "/sys/fs/bpf/tc/globals/my_cilium_map") },
			func(t *testing.T) { pinAt(t, array(t, "x"), "/sys/fs/bpf/tc/globals/cilium_ct4_global") }},
	}
	return append(list, cgroupLeftovers()...)
}

func cgroupLeftovers() []leftover {
	const root = "/sys/fs/cgroup"
	var list []leftover
	for _, place := range []struct {
		at     ebpf.AttachType
		name   string
		shown  string
		byLink bool // through a pinned bpf_link, otherwise PROG_ATTACH
	}{
		{ebpf.AttachCGroupInet4Connect, "cil_sock4_conne", "Inet4Connect", true},
		{ebpf.AttachCGroupUDP4Sendmsg, "cil_sock4_sendm", "UDP4Sendmsg", true},
		{ebpf.AttachCgroupInet4GetPeername, "cil_sock4_getpe", "Inet4GetPeername", true},
		{ebpf.AttachCgroupInetSockRelease, "cil_sock_releas", "InetSockRelease", true},
		{ebpf.AttachCGroupInet6Connect, "cil_sock6_conne", "Inet6Connect", false},
		{ebpf.AttachCGroupUDP6Sendmsg, "cil_sock6_sendm", "UDP6Sendmsg", false},
		{ebpf.AttachCgroupInet6GetPeername, "cil_sock6_getpe", "Inet6GetPeername", false},
		{ebpf.AttachCGroupInet6PostBind, "cil_sock6_post_", "Inet6PostBind", false},
	} {
		load := func(t *testing.T, name string) *ebpf.Program {
			return cgroupProgram(t, places[place.at], place.at, name)
		}
		list = append(list, leftover{
			"cgroup program " + place.name, "cgroup program " + root + " " + place.shown + " " + place.name, true,
			func(t *testing.T) { progAttach(t, root, place.at, load(t, "foreign"), allowMulti) },
			func(t *testing.T) {
				prog := load(t, place.name)
				if place.byLink {
					pinned(t, attachCgroup(t, root, place.at, prog), "/sys/fs/bpf/cilium/socketlb/links/cgroup/"+place.name)
					return
				}
				progAttach(t, root, place.at, prog, allowMulti)
			},
		})
	}
	return list
}

// netLeftovers are links, routes, rules, namespaces and IPsec. The twins of routes and rules
// are those of foreignRoutes. Links get addrgenmode before they come up: in one command, the
// kernel brings the link up first, and may give it an address.
func netLeftovers() []leftover {
	do := func(commands ...string) func(*testing.T) {
		return func(t *testing.T) { ip(t, commands...) }
	}
	state := func(ends, mark, spi string) func(*testing.T) {
		return func(t *testing.T) {
			keepStates(t)
			ip(t, "xfrm state allocspi "+ends+" proto esp reqid 1 mode tunnel "+mark+" min "+spi+" max "+spi)
		}
	}
	policy := func(selector, mark string) func(*testing.T) {
		return do("xfrm policy add " + selector + " dir out " + mark + " tmpl src 10.0.0.1 dst 10.0.0.2 proto esp reqid 1 mode tunnel")
	}
	return []leftover{
		{"cilium_host and cilium_net", "link cilium_host", false,
			do("link add dev my_cilium type veth peer name ciliumx"),
			do("link add dev cilium_host type veth peer name cilium_net", "link set dev cilium_host addrgenmode none", "link set dev cilium_net addrgenmode none",
				"link set dev cilium_host up", "link set dev cilium_net up", "addr add 10.0.0.1/32 dev cilium_host")},
		{"cilium_vxlan", "link cilium_vxlan", false,
			do("link add dev vxlan.calico type vxlan id 4096 dstport 4789 dev eth0"),
			do("link add dev cilium_vxlan type vxlan external dstport 8472")},
		{"lxc_health", "link lxc_health", false,
			do("link add dev lxcbr0 type bridge", "link add dev lxdveth type veth peer name lxdpeer"),
			do("netns add cilium-health-x", "link add dev lxc_health type veth peer name cilium netns cilium-health-x")},
		{"link of an endpoint with 15 characters, its peer in a namespace", "link lxc0123456789ab", false,
			do("netns add other", "link add dev lxcnothexatall type veth peer name eth0 netns other"),
			do("netns add cni-12345678", "link add dev lxc0123456789ab type veth peer name eth0 netns cni-12345678",
				"link set dev lxc0123456789ab addrgenmode none", "link set dev lxc0123456789ab up")},
		{"link of an endpoint by its programs", "link lxcbyprogram", false, nil, func(t *testing.T) {
			veth(t, "lxcbyprogram", "peer")
			clsact(t, "lxcbyprogram")
			filter(t, "lxcbyprogram", ingress, 1, "", program(t, ebpf.SchedCLS, "cil_from_container"))
		}},
		{"IPv4 route", "route 10.0.1.0/24 via 10.0.0.1 dev cilium_host table 254", false,
			func(t *testing.T) { foreignRoutes(t) },
			do("-4 route add 10.0.1.0/24 via 10.0.0.1 dev cilium_host src 10.0.0.1 mtu 1450")},
		{"IPv4 route of an endpoint", "route 10.0.0.9/32 dev lxc0123456789ab table 254", false, nil,
			do("-4 route add 10.0.0.9/32 dev lxc0123456789ab")},
		{"IPv6 route", "route fd00:1::/64 via fe80::1 dev cilium_host table 254", false, nil,
			do("-6 route add fd00:1::/64 via fe80::1 dev cilium_host")},
		{"IPv4 route in table 2005", "route 0.0.0.0/0 via 10.0.0.1 dev cilium_host table 2005", false, nil,
			do("-4 route add 10.0.0.1 dev cilium_host table 2005", "-4 route add default via 10.0.0.1 dev cilium_host table 2005")},
		{"IPv6 route in table 2005", "route ::/0 dev cilium_host table 2005", false, nil,
			do("-6 route add default dev cilium_host table 2005")},
		{"IPv4 route in table 2004", "route local 0.0.0.0/0 dev lo table 2004", false, nil,
			do("-4 route add local default dev lo table 2004 proto kernel")},
		{"IPv6 route in table 2004", "route local ::/0 dev lo table 2004", false, nil,
			do("-6 route add local default dev lo table 2004")},
		{"IPv4 route in a further table", "route 10.0.4.0/24 dev cilium_host table 301", false, nil,
			do("-4 route add 10.0.4.0/24 dev cilium_host table 301")},
		{"routes of several hops and metrics", "route 10.0.3.0/24 dev cilium_host dev cilium_net table 254", false, nil,
			do("-4 route add 10.0.2.0/24 dev cilium_host metric 5", "-4 route add 10.0.2.0/24 dev cilium_net metric 6", "-4 route append 10.0.2.0/24 dev cilium_host metric 6",
				"-4 route add 10.0.3.0/24 proto kernel nexthop dev cilium_host weight 1 nexthop dev cilium_net weight 2", "-4 route add 10.0.4.0/24 dev cilium_host tos 4 table 4711",
				"-6 route add fd00:2::/64 nexthop via fe80::1 dev cilium_host nexthop via fe80::1 dev cilium_net", "-6 route add default dev cilium_host table 100000")},
		{"gone endpoints", "route blackhole 10.0.9.8/32 table 254", false, nil,
			do("-4 route add blackhole 10.0.9.8/32 proto kernel", "-4 route add unreachable 10.0.9.9/32 proto kernel")},
		{"unreachable gone endpoint, IPv6", "route unreachable fd00:9::9/128 dev lo table 254", false, nil,
			do("-6 route add unreachable fd00:9::9/128 proto kernel")},
		{"IPv4 rule", "ip rule IPv4 9: fwmark 0x200/0xf00 lookup 2004", false, nil,
			do("-4 rule add pref 9 fwmark 0x200/0xf00 lookup 2004", "-4 rule add pref 10 fwmark 0xa00/0xf00 lookup 2005")},
		{"IPv6 rule", "ip rule IPv6 10: fwmark 0xa00/0xf00 lookup 2005", false, nil,
			do("-6 rule add pref 9 fwmark 0x200/0xf00 lookup 2004", "-6 rule add pref 10 fwmark 0xa00/0xf00 lookup 2005")},
		{"rule of the egress proxy", "ip rule IPv4 10: fwmark 0xb00/0xf00 lookup 2005", false, func(t *testing.T) { ciliumNeighbours(t) },
			do("-4 rule add pref 10 fwmark 0xb00/0xf00 lookup 2005 proto kernel", "-6 rule add pref 10 fwmark 0xb00/0xf00 lookup 2005 proto kernel")},
		{"rules and routes of IPsec", "route local 10.0.0.0/24 dev eth0 table 200", false, nil,
			do("-4 rule add pref 1 fwmark 0xd00/0xf00 lookup 200 proto kernel", "-4 rule add pref 1 fwmark 0xe00/0xf00 lookup 200 proto kernel",
				"-6 rule add pref 1 fwmark 0xd00/0xf00 lookup 200 proto kernel", "-6 rule add pref 1 fwmark 0xe00/0xf00 lookup 200 proto kernel", "-6 route add local fd00::/112 dev eth0 table 200 proto kernel",
				"-4 route add local 10.0.0.0/24 dev eth0 table 200 proto kernel", "-4 route add 10.0.2.0/24 dev cilium_host table 200 proto kernel mtu 1400")},
		{"rule and route of a VTEP", "ip rule IPv4 112: to 10.1.1.0/24 lookup 202", false, nil,
			do("-4 rule add pref 112 to 10.1.1.0/24 lookup 202", "-4 rule add pref 112 to 10.1.2.1 lookup 202", "-4 route add 10.1.1.0/24 dev cilium_host scope link table 202 mtu 1450")},
		{"rule of ENI for nodePorts", "ip rule IPv6 109: fwmark 0x80/0x80 lookup 254", false, nil,
			do("-4 rule add pref 109 fwmark 0x80/0x80 lookup main proto kernel", "-6 rule add pref 109 fwmark 0x80/0x80 lookup main proto kernel")},
		{"rules and routes of ENI for a pod, and of Azure's", "ip rule IPv4 20: to 10.0.0.9/32 lookup 254", false, nil,
			do("-4 rule add pref 20 to 10.0.0.9 lookup main proto kernel", "-6 rule add pref 20 to fd00::9 lookup main proto kernel",
				"-4 rule add pref 111 from 10.0.0.9 to 10.9.0.0/16 lookup 11 proto kernel", "-4 rule add pref 111 from 10.0.0.10 lookup 10 proto kernel",
				"-4 rule add pref 110 from 10.0.0.11 lookup 4 proto kernel", "-4 rule add pref 110 from 10.0.0.11 to 10.9.0.0/16 lookup 4 proto kernel",
				"-6 rule add pref 111 from fd00::9 lookup 11 proto kernel", "-4 rule add pref 32765 from 10.0.0.9 lookup 11 proto kernel",
				"-4 route add 10.9.0.2 dev eth0 scope link table 11 proto kernel", "-4 route add default via 10.9.0.2 dev eth0 table 11 proto kernel",
				"-6 route add fd09::2 dev eth0 table 11 proto kernel", "-6 route add default via fd09::2 dev eth0 table 11 proto kernel")},
		{"network namespace of the agent", "network namespace cilium-health", false, do("netns add my-cilium"), do("netns add cilium-health")},
		{"network namespace of a pod", "network namespace cni-12345678", false, do("netns add cnix-1"), do("netns add cni-0")},
		{"xfrm policy", "xfrm policy ", false,
			policy("src 10.1.0.0/24 dst 10.2.0.0/24", ""), policy("src 0.0.0.0/0 dst 10.3.0.0/24", "mark 0x12343e00 mask 0xffffff00")},
		{"xfrm state", "xfrm state from 10.0.0.1 to 10.0.0.2 ", false,
			state("src 10.1.0.1 dst 10.1.0.2", "mark 0x42 mask 0xffffffff", "0x10"), state("src 10.0.0.1 dst 10.0.0.2", "mark 0xd00 mask 0xf00", "0x3")},
	}
}

func netfilterLeftovers() []leftover {
	// The tables and built-in chains that ours need already exist.
	empty := []string{"*raw", "COMMIT", "*mangle", "-A PREROUTING -j ACCEPT", "COMMIT", "*nat", "-A POSTROUTING -j ACCEPT", "-A PREROUTING -j ACCEPT", "COMMIT", "*filter", "COMMIT"}
	raw := []string{"*raw", "-A OUTPUT -j ACCEPT", "COMMIT"}
	var list []leftover
	for _, variant := range []struct{ tool, item string }{
		{"iptables-nft", "iptables-nft ip "}, {"ip6tables-nft", "iptables-nft ip6 "},
		{"iptables-legacy", "iptables-legacy ip "}, {"ip6tables-legacy", "iptables-legacy ip6 "},
	} {
		list = append(list, leftover{
			"chains of " + variant.tool, variant.item + "nat chain CILIUM_POST_nat", false,
			func(t *testing.T) {
				for _, lines := range [][]string{empty, raw, foreignRules} {
					rules(t, variant.tool, lines...)
				}
				rules(t, variant.tool, "*nat", ":AWS-SNAT-CHAIN-0 - [0:0]", "-A POSTROUTING -j AWS-SNAT-CHAIN-0", "COMMIT")
			},
			func(t *testing.T) { rules(t, variant.tool, ourRules...) },
		})
	}
	return append(list, leftover{
		"ipset, used by a rule", "ipset cilium_node_set_v4", false,
		func(t *testing.T) {
			run(t, "ipset", "create", "foreign", "hash:ip")
			run(t, "ipset", "add", "foreign", "10.0.0.1")
			run(t, "nft", "add table ip CILIUM_nat; add chain ip CILIUM_nat CILIUM_x { accept; }; add table inet filter; add chain inet filter CILIUM_x { counter; }") // not of iptables
		},
		func(t *testing.T) {
			run(t, "ipset", "create", "cilium_node_set_v4", "hash:ip")
			for _, tool := range []string{"iptables-nft", "iptables-legacy"} {
				rules(t, tool, "*nat", "-A CILIUM_POST_nat -m set --match-set cilium_node_set_v4 dst -j ACCEPT", "COMMIT")
			}
		},
	})
}

func fileLeftovers() []leftover {
	put := func(names ...string) func(*testing.T) {
		return func(t *testing.T) { files(t, "/", names...) }
	}
	mount := func(fstype, at string) func(*testing.T) {
		return func(t *testing.T) {
			require.NoError(t, os.MkdirAll(at, 0o755))
			require.NoError(t, unix.Mount(fstype, at, fstype, 0, ""))
		}
	}
	return []leftover{
		{"cgroup2 mounted by the agent", "mount /run/cilium/cgroupv2", false, mount("cgroup2", "/run/other/cgroupv2"), mount("cgroup2", "/run/cilium/cgroupv2")},
		{"bpffs mounted by the agent", "mount /run/cilium/bpffs", false, mount("bpf", "/run/other/bpffs"), mount("bpf", "/run/cilium/bpffs")},
		{"pins in the agent's bpffs", "pin /run/cilium/bpffs/cilium/map", true,
			func(t *testing.T) { pinAt(t, array(t, "x"), "/run/other/bpffs/cilium/map") },
			func(t *testing.T) { pinAt(t, array(t, "x"), "/run/cilium/bpffs/cilium/map") }},
		{"mount in a state directory", "mount /run/cilium/mounted", false, put("srv/live/file"), func(t *testing.T) {
			require.NoError(t, os.MkdirAll("/run/cilium/mounted", 0o755))
			require.NoError(t, unix.Mount("/srv/live", "/run/cilium/mounted", "", unix.MS_BIND, ""))
		}},
		{"state directory below /run", "state directory /var/run/cilium", false, put("run/other/x", "run/cilium-foreign/x"),
			put("run/cilium/state/1/ep_config.h", "run/cilium/cilium.pid", "run/cilium/out -> /srv/live")},
		{"state directory below /var/lib", "state directory /var/lib/cilium", false, put("var/lib/ciliumx/y"), put("var/lib/cilium/bpf/x.c")},
		{"CNI configuration", "file /etc/cni/net.d/05-cilium.conflist", false,
			put("etc/cni/net.d/06-foreign.conflist", "etc/cni/net.d/05-cilium.conflist.orig"), put("etc/cni/net.d/05-cilium.conflist")},
		{"CNI configuration of an old version", "file /etc/cni/net.d/05-cilium.conf", false, nil, put("etc/cni/net.d/05-cilium.conf")},
		{"CNI configuration that was set aside", "configuration set aside /etc/cni/net.d/10-calico.conflist.cilium_bak", false,
			func(t *testing.T) {
				put("etc/cni/net.d/10-calico.conflist", "etc/cni/net.d/20-taken.conf", "etc/cni/net.d/20-taken.conf.cilium_bak")(t)
			},
			func(t *testing.T) {
				require.NoError(t, os.Rename("/etc/cni/net.d/10-calico.conflist", "/etc/cni/net.d/10-calico.conflist.cilium_bak"))
			}},
		{"CNI plugin", "file /opt/cni/bin/cilium-cni", false, put("opt/cni/bin/bridge", "opt/cni/bin/loopback"), put("opt/cni/bin/cilium-cni")},
		{"sysctl drop-in", "file /etc/sysctl.d/99-zzz-override_cilium.conf", false, put("etc/sysctl.d/99-foreign.conf"), put("etc/sysctl.d/99-zzz-override_cilium.conf")},
	}
}

// It is no answer that an earlier step might change: the plan is wrong.
func TestCLN8_APlanWithoutAScopeIsRefusedBeforeAnythingChanges(t *testing.T) {
	changed := false
	first := bootstrap.Func(
		"change it", func(context.Context) (bool, error) { return false, nil },
		func(context.Context) error { changed = true; return nil })
	p := &bootstrap.Plan{Host: bootstraptest.Host(t), Steps: []bootstrap.Step{
		{Name: "first", Action: first}, {Name: "cleanup", Action: cleanup.Leftovers{Ownership: cleanup.Cilium()}, After: []string{"first"}},
	}}
	for _, run := range []func(*bootstrap.Plan, context.Context) (*bootstrap.Report, error){(*bootstrap.Plan).Check, (*bootstrap.Plan).Apply} {
		report, err := run(p, t.Context())
		require.ErrorIs(t, err, cleanup.ErrNoScope)
		require.Equal(t, bootstrap.Failed, report.Results[1].Status)
	}
	require.False(t, changed)
}
