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

func sample() *cleanup.Inventory {
	inv := &cleanup.Inventory{
		Items: []cleanup.Item{
			{Kind: "tc filter", Object: "eth0 ingress cil_from_netdev", Detail: "pref 1 handle 0x1 program 12"},
			{Kind: "clsact qdisc", Object: "eth0"},
		},
		Left: []cleanup.Item{{Kind: "clsact qdisc", Object: "eth1", Detail: "foreign filter on it: u32 filter pref 9"}},
	}
	for i := range 12 {
		inv.Items = append(inv.Items, cleanup.Item{Kind: "link", Object: fmt.Sprintf("lxc%05x", i), Detail: "veth"})
	}
	inv.Items = append(inv.Items, cleanup.Item{Kind: "state directory", Object: "/var/run/cilium", Detail: "3 files, 1 directory"})
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
