// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cluster_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/kubernetes/e2e/cluster"
)

func TestEndsOfLogs(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"events.txt": "one\ntwo\nthree\n", "pods/agent/0.log": "alone", "pods/agent/1.log": ""} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	ends, err := cluster.Ends(dir, 2)
	require.NoError(t, err)
	require.Equal(t, "== the end of "+dir+"/events.txt\ntwo\nthree\n== the end of "+dir+"/pods/agent/0.log\nalone\n", ends)
	_, err = cluster.Ends(filepath.Join(dir, "none"), 2)
	require.ErrorIs(t, err, os.ErrNotExist)
}
