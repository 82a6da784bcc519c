// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cleanup"
)

func lookup(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := vars[name]
		return value, ok
	}
}

// Each name counts in its place alone, and only with the value "true".
func TestCLN8_Scope(t *testing.T) {
	type vars = map[string]string
	for _, c := range []struct {
		env, config vars
		want        string
	}{
		{nil, nil, ""},
		{vars{"CILIUM_BPF_STATE": "true"}, nil, "bpf-state"},
		{vars{"CLEAN_CILIUM_BPF_STATE": "true"}, nil, "bpf-state"},
		{vars{"CILIUM_ALL_STATE": "true"}, nil, "all-state"},
		{vars{"CLEAN_CILIUM_STATE": "true"}, nil, "all-state"},
		{vars{"CILIUM_BPF_STATE": "true", "CILIUM_ALL_STATE": "true"}, nil, "all-state"},
		{vars{"CILIUM_BPF_STATE": "true", "CILIUM_ALL_STATE": "false"}, nil, "bpf-state"},
		{vars{"CILIUM_ALL_STATE": ""}, nil, ""},
		{vars{"CILIUM_ALL_STATE": "1"}, nil, ""},
		{vars{"CILIUM_ALL_STATE": "True"}, nil, ""},
		{vars{"clean-cilium-state": "true"}, nil, ""},
		{nil, vars{"clean-cilium-state": "false", "clean-cilium-bpf-state": "false"}, ""},
		{nil, vars{"clean-cilium-bpf-state": "true"}, "bpf-state"},
		{nil, vars{"clean-cilium-state": "true"}, "all-state"},
		{nil, vars{"clean-cilium-state": "true", "clean-cilium-bpf-state": "true"}, "all-state"},
		{nil, vars{"CILIUM_ALL_STATE": "true"}, ""},
		{vars{"CILIUM_ALL_STATE": "true"}, vars{"clean-cilium-bpf-state": "true"}, "all-state"},
		{vars{"CILIUM_BPF_STATE": "true"}, vars{"clean-cilium-state": "true"}, "all-state"},
	} {
		require.Equal(t, c.want, cleanup.CiliumScope(lookup(c.env), lookup(c.config)), "%v %v", c.env, c.config)
	}
}

func TestCLN2_ZeroScopeIsAnError(t *testing.T) {
	ctx := context.Background()
	for _, scope := range []string{"", "odd"} {
		c := cleanup.Leftovers{Ownership: cleanup.Cilium(), Scope: scope}
		inv, err := c.Inventory(ctx)
		require.ErrorIs(t, err, cleanup.ErrNoScope)
		require.Empty(t, inv.Items)
		require.ErrorIs(t, c.Remove(ctx, []cleanup.Item{{Kind: "link", Object: "eth0"}}), cleanup.ErrNoScope)
		require.ErrorIs(t, c.Apply(ctx), cleanup.ErrNoScope)
		_, err = c.Check(ctx)
		require.ErrorIs(t, err, cleanup.ErrNoScope)
	}
	_, err := cleanup.Leftovers{Scope: "all-state", Keep: []string{"/"}}.Check(ctx)
	require.ErrorContains(t, err, "path to keep")
}

func TestOtherPlatforms(t *testing.T) {
	if runtime.GOOS == "linux" {
		return
	}
	c := cleanup.Leftovers{Ownership: cleanup.Cilium(), Scope: "all-state"}
	_, err := c.Inventory(context.Background())
	require.ErrorContains(t, err, runtime.GOOS)
}
