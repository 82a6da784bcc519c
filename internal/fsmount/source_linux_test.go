// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/testns"
)

// Linux before 5.19 takes no source for a bpffs.
func TestPLAN6_ADirectoryInABpffsStandsForItsSource(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir, s := testns.TempDir(t), System{Name: "bpffs", FSType: "bpf"}
	for source, marked := range map[string]ledger.Marked{
		"slipway-abc":                    {},
		"slipway-a-b:/var/lib/c:d.e:abc": {Agent: "a-b", Dir: "/var/lib/c:d.e"},
	} {
		path := filepath.Join(dir, directoryOf(source))
		require.NoError(t, os.Mkdir(path, 0o755))
		require.NoError(t, Real{}.Mount("none", path, "bpf", ""))
		require.NoError(t, os.Mkdir(filepath.Join(path, "others"), 0o755))
		require.NoError(t, os.Mkdir(filepath.Join(path, directoryOf(source)), 0o700))
		now, err := s.read(t.Context(), path)
		require.NoError(t, err)
		require.Contains(t, now.Value, source+" id=")
		found, err := s.find(t.Context())
		require.NoError(t, err)
		marked.Object, marked.Remove = path, "umount "+path
		require.Contains(t, found, marked)
		require.NoError(t, s.write(t.Context(), path, ledger.State{}))
		now, err = s.read(t.Context(), path)
		require.NoError(t, err)
		require.True(t, now.IsZero())
	}
}
