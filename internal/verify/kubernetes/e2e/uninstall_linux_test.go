// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/testns"
)

// The manifest that uninstalls leaves an agent's own leftovers, and names those in its way
// and the command that removes them; with the component it removes them.
func TestPLAN6_UninstallRemovesAnAgentsStateWhereAsked(t *testing.T) {
	testns.SkipShort(t, "half a minute")
	begin(t)
	before := prepared(t)
	d := agent(t)
	d.apply(t)
	d.ready(t)
	const pin = "/sys/fs/bpf/tc/globals/cilium_policy"
	on(t, "mkdir -p $(dirname "+pin+"); bpftool map create "+pin+" type array key 4 value 4 entries 1 name policy")
	d.remove(t)

	u := load(t, "uninstall.yaml")
	u.apply(t)
	said := u.says(t, 0)
	require.Contains(t, said, "/sys/fs/bpf is left mounted: it holds pins, which would be lost: tc/globals/cilium_policy")
	require.Contains(t, said, "nodeinit cleanup --all-state: remove everything that belongs to the agent")
	require.FileExists(t, filepath.Join(node.Root(), pin))
	cleaner(t).uninstall(t)
	nodeReady(t, "False")
	settles(t, before, "the node is as it was before")
}
