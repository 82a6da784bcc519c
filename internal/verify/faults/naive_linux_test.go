// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package faults

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/testns"
)

// A rename without a sync loses data at a power cut: otherwise the images would prove nothing.
func TestAPowerCutShowsWhatWasNotSynced(t *testing.T) {
	testns.Root(t)
	work := t.TempDir()
	c := PowerCuts{Binary: "/bin/true", Work: work, FileSystem: "ext4", Command: "apply"}
	first, second := filepath.Join(work, "first.img"), filepath.Join(work, "second.img")
	require.NoError(t, c.format(t.Context(), first))
	for sync, want := range map[string]string{"": "torn", "sync /mnt/new;": "whole"} {
		require.NoError(t, c.on(t.Context(), first, func(s *stand) error {
			if err := s.node.clean(t.Context(), []string{"sh", "echo whole > /mnt/new; " + sync + " mv /mnt/new /mnt/file; " + commit}); err != nil {
				return err
			}
			return copyImage(t.Context(), first, second)
		}))
		require.NoError(t, c.on(t.Context(), second, func(s *stand) error {
			o, err := s.node.command(t.Context(), "sh", "grep whole /mnt/file || echo torn")
			require.Equal(t, want+"\n", o.output)
			return err
		}))
	}
}
