// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cleanup"
)

// Any text is either a valid ownership or an error.
func FuzzOwnership(f *testing.F) {
	cilium, err := json.Marshal(cleanup.Cilium())
	require.NoError(f, err)
	f.Add(string(cilium), "lxc12345")
	f.Add(`{"stateDirs":["/"]}`, "")
	f.Add(`{"links":[{"name":"(((("}]}`, "eth0")
	f.Add(`{"netNS":["[","cni-*"],"pins":["../*"]}`, "cni-1")
	f.Add(`{"routes":[{"table":7,"type":"any","dst":"any","gateway":"fe80::1"}],"rules":[{"table":7,"from":"::/1","to":"host"}],"nfTables":[{"family":"ip","name":"x"}]}`, "")
	f.Add(`[]`, "x")
	f.Fuzz(func(t *testing.T, text, name string) {
		var o cleanup.Ownership
		if json.Unmarshal([]byte(text), &o) != nil {
			return
		}
		if err := cleanup.CompileOwnership(o, name); err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		for _, dir := range o.StateDirs {
			require.True(t, strings.HasPrefix(dir, "/") && dir != "/", dir)
		}
	})
}

// The name that a file regains is part of its present name.
func FuzzAside(f *testing.F) {
	for _, seed := range []string{"a.conf.cilium_bak", "a.conf.cilium_bak.1", ".cilium_bak", "x.cilium_bak.01", "x.cilium_bak.cilium_bak.3", "a.99999999999999999999"} {
		f.Add(seed, ".cilium_bak")
	}
	f.Fuzz(func(t *testing.T, base, suffix string) {
		if name, ok := cleanup.ParseAside(base, suffix); ok {
			require.NotEmpty(t, name)
			require.True(t, strings.HasPrefix(base, name+suffix), "%q of %q", name, base)
		}
	})
}
