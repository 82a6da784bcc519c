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

func TestCLN8_ScopeFromEnv(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want cleanup.Scope
	}{
		{nil, 0},
		{map[string]string{"CILIUM_BPF_STATE": "true"}, cleanup.BPFState},
		{map[string]string{"CLEAN_CILIUM_BPF_STATE": "true"}, cleanup.BPFState},
		{map[string]string{"CILIUM_ALL_STATE": "true"}, cleanup.AllState},
		{map[string]string{"CLEAN_CILIUM_STATE": "true"}, cleanup.AllState},
		{map[string]string{"CILIUM_BPF_STATE": "true", "CILIUM_ALL_STATE": "true"}, cleanup.AllState},
		{map[string]string{"CILIUM_BPF_STATE": "true", "CILIUM_ALL_STATE": "false"}, cleanup.BPFState},
		{map[string]string{"CILIUM_ALL_STATE": ""}, 0},
		{map[string]string{"CILIUM_ALL_STATE": "1"}, 0},
		{map[string]string{"CILIUM_ALL_STATE": "True"}, 0},
		{map[string]string{"clean-cilium-state": "true"}, 0},
	} {
		require.Equal(t, c.want, cleanup.CiliumScopeFromEnv(lookup(c.env)), c.env)
	}
}

func TestCLN8_ScopeFromConfig(t *testing.T) {
	for _, c := range []struct {
		config map[string]string
		want   cleanup.Scope
	}{
		{nil, 0},
		{map[string]string{"clean-cilium-state": "false", "clean-cilium-bpf-state": "false"}, 0},
		{map[string]string{"clean-cilium-bpf-state": "true"}, cleanup.BPFState},
		{map[string]string{"clean-cilium-state": "true"}, cleanup.AllState},
		{map[string]string{"clean-cilium-state": "true", "clean-cilium-bpf-state": "true"}, cleanup.AllState},
		{map[string]string{"CILIUM_ALL_STATE": "true"}, 0},
	} {
		require.Equal(t, c.want, cleanup.CiliumScopeFromConfig(lookup(c.config)), c.config)
	}
}

func TestCLN2_ZeroScopeIsAnError(t *testing.T) {
	ctx := context.Background()
	for _, scope := range []cleanup.Scope{0, 99} {
		c := cleanup.Leftovers{Ownership: cleanup.Cilium(), Scope: scope}
		inv, err := c.Inventory(ctx)
		require.ErrorIs(t, err, cleanup.ErrNoScope)
		require.Empty(t, inv.Items)
		require.ErrorIs(t, c.Remove(ctx, []cleanup.Item{{Kind: "link", Object: "eth0"}}), cleanup.ErrNoScope)
		require.ErrorIs(t, c.Apply(ctx), cleanup.ErrNoScope)
		_, err = c.Check(ctx)
		require.ErrorIs(t, err, cleanup.ErrNoScope)
	}
	_, err := cleanup.Leftovers{Scope: cleanup.AllState, Keep: []string{"/"}}.Check(ctx)
	require.ErrorContains(t, err, "path to keep")
}

func TestOtherPlatforms(t *testing.T) {
	if runtime.GOOS == "linux" {
		return
	}
	c := cleanup.Leftovers{Ownership: cleanup.Cilium(), Scope: cleanup.AllState}
	_, err := c.Inventory(context.Background())
	require.ErrorContains(t, err, runtime.GOOS)
}
