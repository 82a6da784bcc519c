// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// Each new mount in the initial cgroup namespace sets them for all mounts of the node.
func TestCG4_ANewMountKeepsTheOptionsOfTheHierarchy(t *testing.T) {
	for super, want := range map[string]string{
		"rw": "nosuid", "ro": "nosuid", "rw,seclabel": "nosuid",
		"rw,nsdelegate,memory_recursiveprot":                 "nsdelegate,memory_recursiveprot,nosuid",
		`rw,context="u:r:t:s0:c1,c2",nsdelegate,a_later_one`: "nsdelegate,a_later_one,nosuid",
	} {
		infos := []mountinfo.Mount{{FSType: "tmpfs", Super: "rw,mode=755"}, {FSType: "cgroup2", Super: super}}
		require.Equal(t, want, keepOptions(infos, "cgroup2", "nosuid"))
		require.Equal(t, "nosuid", keepOptions(infos, "bpf", "nosuid"))
		require.Equal(t, "nosuid", keepOptions(infos[:1], "cgroup2", "nosuid"))
	}
}
