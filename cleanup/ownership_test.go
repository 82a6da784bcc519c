// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"encoding/json"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/cleanup"
)

var _ bootstrap.Action = cleanup.Cleanup{}

func TestCLN2_BadOwnershipRemovesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		own  cleanup.Ownership
		want string
	}{
		"program prefix":     {cleanup.Ownership{ProgramPrefixes: []string{"cil_", ""}}, "an empty program prefix"},
		"empty rule":         {cleanup.Ownership{Links: []cleanup.LinkRule{{}}}, "a link rule needs a name or programs"},
		"kind alone":         {cleanup.Ownership{Links: []cleanup.LinkRule{{Kind: "veth"}}}, `kind "veth" alone`},
		"rule prefix":        {cleanup.Ownership{Links: []cleanup.LinkRule{{Name: "x", Programs: []string{""}}}}, "an empty program prefix"},
		"expression":         {cleanup.Ownership{Links: []cleanup.LinkRule{{Name: "("}}}, "missing closing"},
		"pin of the root":    {cleanup.Ownership{Pins: []string{""}}, `pin ""`},
		"pin dot":            {cleanup.Ownership{Pins: []string{"."}}, `pin "."`},
		"pin outside":        {cleanup.Ownership{Pins: []string{"../x"}}, `pin "../x"`},
		"pin above":          {cleanup.Ownership{Pins: []string{".."}}, `pin ".."`},
		"pin absolute":       {cleanup.Ownership{Pins: []string{"/sys/fs/bpf/x"}}, `pin "/sys/fs/bpf/x"`},
		"pin pattern":        {cleanup.Ownership{Pins: []string{"[x"}}, "syntax error in pattern"},
		"pin wild directory": {cleanup.Ownership{Pins: []string{"*/x"}}, "only the last element"},
		"root":               {cleanup.Ownership{StateDirs: []string{"/"}}, "refusing to empty the root"},
		"empty path":         {cleanup.Ownership{StateDirs: []string{""}}, "the path is empty"},
		"relative path":      {cleanup.Ownership{StateDirs: []string{"run"}}, "want an absolute path"},
	} {
		t.Run(name, func(t *testing.T) {
			c2 := cleanup.Cleanup{Ownership: c.own, Scope: cleanup.AllState}
			inv, err := c2.Inventory(context.Background())
			require.ErrorContains(t, err, c.want)
			require.Empty(t, inv.Items)
			require.ErrorContains(t, c2.Apply(context.Background()), c.want)
		})
	}
}

// Ownership is data: another agent's may come from a file.
func TestOwnershipAsJSON(t *testing.T) {
	text, err := json.Marshal(cleanup.Cilium())
	require.NoError(t, err)
	var own cleanup.Ownership
	require.NoError(t, json.Unmarshal(text, &own))
	require.Equal(t, cleanup.Cilium(), own)
}

func TestCLN2_ZeroOwnershipOwnsNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		return
	}
	c := cleanup.Cleanup{Scope: cleanup.AllState}
	inv, err := c.Inventory(context.Background())
	require.NoError(t, err)
	require.Empty(t, inv.Items)
	require.Empty(t, inv.Left)
	require.NoError(t, c.Remove(context.Background(), []cleanup.Item{}))
}
