// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/configdir"
)

// agentConfig has as many keys as an agent's ConfigMap: 144, in 4.4 KB.
func agentConfig(b *testing.B, debug string) *configresolve.Config {
	b.Helper()
	data := values{"debug": debug}
	for i := range 143 {
		data[fmt.Sprintf("agent-setting-%03d", i)] = strings.Repeat("v", i%25)
	}
	return config(b, data)
}

// BenchmarkWrite writes a new configuration, and one that is already there.
func BenchmarkWrite(b *testing.B) {
	on, off := agentConfig(b, "true"), agentConfig(b, "false")
	for _, bench := range []struct {
		name  string
		turns []*configresolve.Config
	}{{"changed", []*configresolve.Config{on, off}}, {"unchanged", []*configresolve.Config{on}}} {
		b.Run(bench.name, func(b *testing.B) {
			dir := b.TempDir()
			for i := 0; b.Loop(); i++ {
				_, err := configdir.Write(b.Context(), dir, bench.turns[i%len(bench.turns)])
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkSyncFiles syncs the files of a configuration to disk, one at a time and as many at
// once as Write does.
func BenchmarkSyncFiles(b *testing.B) {
	config := maps.Collect(agentConfig(b, "true").All())
	for _, atOnce := range []int{1, 8} {
		b.Run(fmt.Sprintf("%d at once", atOnce), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				files := writeFiles(b, b.TempDir(), config)
				b.StartTimer()
				require.NoError(b, configdir.SyncFiles(files, atOnce))
				b.StopTimer()
				for _, f := range files {
					require.NoError(b, f.Close())
				}
				b.StartTimer()
			}
		})
	}
}

func writeFiles(b *testing.B, dir string, content values) (files []*os.File) {
	b.Helper()
	for _, key := range slices.Sorted(maps.Keys(content)) {
		f, err := os.Create(filepath.Join(dir, key))
		require.NoError(b, err)
		_, err = f.WriteString(content[key])
		require.NoError(b, err)
		files = append(files, f)
	}
	return files
}
