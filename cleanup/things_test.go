// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cleanup"
)

// acme is an agent that owns one object of each kind.
func acme() cleanup.Ownership {
	return cleanup.Ownership{
		Agent:    "acme",
		Programs: []string{"acme_from_container"}, Filters: []string{"acme-{link}"}, Pins: []string{"acme", "tc/globals/acme_*"},
		Links: []cleanup.LinkRule{{Name: "acme_.*"}, {Name: "pod.*", Kind: "veth", Programs: []string{"acme_from_container", "acme-{link}"}}},
		Routes: []cleanup.RouteRule{
			{Table: 2100, Type: "any", Dst: "any", Link: "any", Gateway: "any"},
			{Table: 254, Type: "blackhole", Dst: "host", Protocol: 2},
			{Table: 254, Type: "unicast", Dst: "10.8.0.0/16", Gateway: "192.0.2.1", Link: "any", Protocol: 77},
		},
		Rules: []cleanup.PolicyRule{{Mark: cleanup.Mark{Value: 0x100, Mask: 0xf00}, Table: 2100}, {From: "10.8.0.0/16", Priority: 9, Table: 254}},
		NetNS: []string{"acme-*"}, XFRM: []cleanup.XFRMRule{{Mark: cleanup.Mark{Value: 0xd00, Mask: 0xf00}, Masks: []uint32{0xf00}}},
		ChainPrefixes: []string{"ACME-"}, NFTables: []cleanup.NFTable{{Family: "inet", Name: "acme"}}, IPSetPrefixes: []string{"acme_"},
		Mounts: []cleanup.MountRule{{Path: "/run/acme/bpf", Type: "bpf"}},
		Files:  []string{"/etc/cni/net.d/05-acme.conflist"}, StateDirs: []string{"/var/run/acme"},
		SetAside: []string{"/etc/cni/net.d/*.acme_bak"},
	}
}

func TestOfThingsInMemoryWhatIsOwned(t *testing.T) {
	addr, prefix := netip.MustParseAddr, netip.MustParsePrefix
	ours := cleanup.Things{
		Links: []cleanup.Link{
			{Name: "acme_host", Kind: "dummy"},
			{Name: "pod1", Kind: "veth", Programs: []string{"acme_from_container"}},
			{Name: "pod2", Kind: "veth", Programs: []string{"acme_from_conta"}}, // as the kernel stores it
			{Name: "pod3", Kind: "veth", Filters: []string{"acme-pod3"}},
		},
		Routes: []cleanup.Route{
			{Table: 254, Type: "unicast", Dst: prefix("10.8.1.1/32"), Links: []string{"pod1"}},
			{Table: 2100, Type: "local", Dst: prefix("0.0.0.0/0"), Links: []string{"lo"}},
			{Table: 2100, Type: "unicast", Dst: prefix("10.0.0.0/8"), Links: []string{"eth0", "eth1"}},
			{Table: 254, Type: "blackhole", Dst: prefix("10.8.1.2/32"), Protocol: 2},
			{Table: 254, Type: "blackhole", Dst: prefix("fd00::1/128"), Links: []string{"lo"}, Protocol: 2},
			{Table: 254, Type: "unicast", Dst: prefix("10.8.0.0/16"), Gateway: addr("192.0.2.1"), Links: []string{"eth0"}, Protocol: 77},
		},
		Rules: []cleanup.Rule{
			{Priority: 5, Mark: cleanup.Mark{Value: 0x100, Mask: 0xf00}, Table: 2100},
			{Priority: 9, From: prefix("10.8.0.0/16"), To: prefix("0.0.0.0/0"), Table: 254},
		},
		Programs: []string{"acme_from_container"},
		Pins:     []string{"acme", "acme/deep/map", "tc/globals/acme_ct"},
		NetNS:    []string{"acme-1"}, XFRM: []cleanup.Mark{{Value: 0x3d00, Mask: 0xf00}},
		Chains: []string{"ACME-POST"}, NFTables: []cleanup.NFTable{{Family: "inet", Name: "acme"}}, IPSets: []string{"acme_nodes"},
		Mounts: []cleanup.MountRule{{Path: "/run/acme/bpf", Type: "bpf"}},
		Files:  []string{"/etc/cni/net.d/05-acme.conflist", "/etc/cni/net.d/05-acme.conflist.acme_bak", "/etc/cni/net.d/05-acme.conflist.acme_bak.2", "/run/acme", "/var/run/acme/state/x", "/run/acme/y"},
	}
	others := cleanup.Things{
		Links: []cleanup.Link{
			{Name: "lo", Kind: ""}, {Name: "eth0", Kind: "veth", Programs: []string{"acme_from_container"}},
			{Name: "pod4", Kind: "veth"}, {Name: "pod5", Kind: "dummy", Programs: []string{"acme_from_container"}},
			{Name: "pod6", Kind: "veth", Programs: []string{"acme_from"}, Filters: []string{"acme-pod3", "acme_from_container"}},
		},
		Routes: []cleanup.Route{
			{Table: 254, Type: "unicast", Dst: prefix("10.9.0.0/16"), Links: []string{"acme_host", "eth0"}},
			{Table: 254, Type: "blackhole", Dst: prefix("10.8.1.0/24"), Protocol: 2},
			{Table: 254, Type: "unreachable", Dst: prefix("10.8.1.2/32"), Protocol: 2},
			{Table: 254, Type: "unicast", Dst: prefix("10.8.0.0/16"), Gateway: addr("192.0.2.2"), Links: []string{"eth0"}, Protocol: 77},
			{Table: 254, Type: "unicast", Dst: prefix("0.0.0.0/0"), Gateway: addr("192.0.2.1"), Links: []string{"eth0"}, Protocol: 77},
		},
		Rules: []cleanup.Rule{
			{Priority: 5, Mark: cleanup.Mark{Value: 0x100, Mask: 0xf00}}, // to no table
			{Priority: 5, Mark: cleanup.Mark{Value: 0x100, Mask: 0xf00}, Table: 2100, More: true},
			{Priority: 5, Mark: cleanup.Mark{Value: 0x100, Mask: 0xf00}, Table: 2100, Not: true},
			{Priority: 5, Mark: cleanup.Mark{Value: 0x100, Mask: 0xff00}, Table: 2100},
			{Priority: 8, From: prefix("10.8.0.0/16"), Table: 254},
			{Priority: 9, From: prefix("10.8.1.0/24"), Table: 254},
		},
		Programs: []string{"acme_from", "acme_from_contra", ""},
		Pins:     []string{"acme2", "tc", "tc/globals", "tc/globals/other", "tc/acme_ct", "x/acme"},
		NetNS:    []string{"acme", "cni-acme-1"}, XFRM: []cleanup.Mark{{Value: 0xd00, Mask: 0xff00}, {}},
		Chains: []string{"KUBE-ACME-", "acme-x"}, NFTables: []cleanup.NFTable{{Family: "ip", Name: "acme"}, {Family: "inet", Name: "acme2"}}, IPSets: []string{"other_acme_"},
		Mounts: []cleanup.MountRule{{Path: "/run/acme/bpf", Type: "tmpfs"}, {Path: "/run/acme/bpf2", Type: "bpf"}},
		Files:  []string{"/etc/cni/net.d", "/etc/cni/net.d/10-other.conflist.acme_bak", "/etc/cni/05-acme.conflist.acme_bak", "/run/acme2", "/run", "/run/acme/../other"},
	}
	own := acme()
	of, err := own.Of(ours)
	require.NoError(t, err)
	require.Equal(t, ours, of)

	// The others' objects are considered beside ours, because our links matter.
	both := others
	both.Links = append(both.Links[:len(both.Links):len(both.Links)], ours.Links...)
	of, err = own.Of(both)
	require.NoError(t, err)
	require.Equal(t, cleanup.Things{Links: ours.Links}, of)

	of, err = cleanup.Ownership{}.Of(ours)
	require.NoError(t, err)
	require.Equal(t, cleanup.Things{}, of, "the zero value owns nothing")

	own.Links = append(own.Links, cleanup.LinkRule{Name: "eth.*"})
	of, err = own.Of(ours)
	require.Equal(t, own.Validate(), err)
	require.Error(t, err)
	require.Equal(t, cleanup.Things{}, of)
}
