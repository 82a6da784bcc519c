// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cleanup"
)

var update = flag.Bool("update", false, "write the golden files")

// sample has one item of each kind, in the order of removal, and many of one.
func sample() *cleanup.Inventory {
	inv := &cleanup.Inventory{
		Items: []cleanup.Item{
			{Kind: "tc filter", Object: "eth0 ingress cil_from_netdev", Detail: "pref 1 handle 0x1 program 12", Group: "clsact qdisc eth0"},
			{Kind: "clsact qdisc", Object: "eth0"},
			{Kind: "xdp program", Object: "eth0 cil_xdp_entry", Detail: "native program 14"},
		},
		Left: []cleanup.Item{
			{Kind: "clsact qdisc", Object: "eth1", Detail: "foreign filter on it: u32 filter pref 9"},
			{Kind: "mount", Object: "/run/cilium/bpffs", Detail: "bpf; holds a pin of another owner: x"},
			{Kind: "configuration set aside", Object: "/etc/cni/net.d/10-a.conf.cilium_bak", Detail: "10-a.conf exists"},
		},
	}
	for i := range 12 {
		inv.Items = append(inv.Items, cleanup.Item{Kind: "link", Object: fmt.Sprintf("lxc%05x", i), Detail: "veth"})
	}
	inv.Items = append(inv.Items,
		cleanup.Item{Kind: "iptables-nft", Object: "ip nat rule POSTROUTING -> CILIUM_POST_nat", Detail: "handle 7", Group: "iptables-nft ip nat chain CILIUM_POST_nat"},
		cleanup.Item{Kind: "iptables-nft", Object: "ip nat chain CILIUM_POST_nat", Detail: "3 rules"},
		cleanup.Item{Kind: "iptables-legacy", Object: "ip6 raw rule OUTPUT -> CILIUM_OUTPUT_raw", Detail: `-m comment --comment "cilium-feeder: CILIUM_OUTPUT_raw" -j CILIUM_OUTPUT_raw`},
		cleanup.Item{Kind: "iptables-legacy", Object: "ip6 raw chain CILIUM_OUTPUT_raw", Detail: "1 rule"},
		cleanup.Item{Kind: "ipset", Object: "cilium_node_set_v4", Detail: "hash:ip"},
		cleanup.Item{Kind: "pin", Object: "/sys/fs/bpf/tc/globals/cilium_ct4_global"},
		cleanup.Item{Kind: "mount", Object: "/run/cilium/cgroupv2", Detail: "cgroup2"},
		cleanup.Item{Kind: "state directory", Object: "/var/run/cilium", Detail: "3 files, 1 directory"},
		cleanup.Item{Kind: "file", Object: "/etc/cni/net.d/05-cilium.conflist"},
		cleanup.Item{Kind: "configuration set aside", Object: "/etc/cni/net.d/87-podman.conflist.cilium_bak", Detail: "gets its name back: 87-podman.conflist"},
	)
	return inv
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, strings.ReplaceAll(string(want), "\r\n", "\n"), got)
}

func TestCLN1_Text(t *testing.T) {
	for name, fold := range map[string]int{"inventory.txt": 0, "inventory-folded.txt": 5} {
		var b strings.Builder
		require.NoError(t, sample().WriteText(&b, fold))
		golden(t, name, b.String())
	}
	var b strings.Builder
	require.NoError(t, new(cleanup.Inventory).WriteText(&b, 5))
	require.Equal(t, "nothing to remove\n", b.String())
	require.ErrorIs(t, sample().WriteText(brokenPipe{}, 0), errBroken)
}

var errBroken = errors.New("broken pipe")

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errBroken }

func TestCLN1_JSON(t *testing.T) {
	text, err := json.MarshalIndent(sample(), "", "  ")
	require.NoError(t, err)
	golden(t, "inventory.json", string(text)+"\n")
	text, err = json.Marshal(new(cleanup.Inventory))
	require.NoError(t, err)
	require.JSONEq(t, `{"count": 0, "groups": [], "left": []}`, string(text))
}
