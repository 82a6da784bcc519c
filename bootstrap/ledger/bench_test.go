// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// How long a step takes that has nothing to change, and how large the file is.
func BenchmarkApply(b *testing.B) {
	for _, objects := range []int{100, 5000} {
		b.Run(fmt.Sprint(objects), func(b *testing.B) {
			values := map[string]string{}
			k := &ledger.Kind{
				Name: "value", Rounds: true,
				Read: func(_ context.Context, o string) (ledger.State, error) {
					return ledger.State{Type: "value", Value: values[o]}, nil
				},
				Write: func(_ context.Context, o string, to ledger.State) error { values[o] = to.Value; return nil },
			}
			var wants ledger.Wants
			for i := range objects {
				wants.List = append(wants.List, ledger.Want{Kind: k, Object: fmt.Sprintf("net.ipv4.conf.lxc%08d.rp_filter", i), To: ledger.State{Type: "value", Value: "1"}})
			}
			dir := filepath.Join(b.TempDir(), "state")
			book, err := (&ledger.Ledger{Dir: dir, Agent: "a", NoOwner: true}).Open(context.Background())
			require.NoError(b, err)
			defer book.Close()
			for b.Loop() {
				_, err := book.Apply(b.Context(), "s", wants)
				require.NoError(b, err)
			}
			info, err := os.Stat(filepath.Join(dir, "ledger"))
			require.NoError(b, err)
			b.ReportMetric(float64(info.Size())/1024, "KiB")
		})
	}
}

// How long a large file takes: the first time, and with nothing to change.
func BenchmarkLargeFile(b *testing.B) {
	dir := b.TempDir()
	source := filepath.Join(dir, "source")
	require.NoError(b, os.WriteFile(source, bytes.Repeat([]byte("0123456789abcde\n"), 70<<16), 0o755))
	book, err := (&ledger.Ledger{Dir: filepath.Join(dir, "state"), Agent: "a", NoOwner: true}).Open(context.Background())
	require.NoError(b, err)
	defer book.Close()
	path := filepath.Join(dir, "plugin")
	wants := ledger.Wants{List: []ledger.Want{ledger.FileFrom(path, 0o755, func() (io.ReadCloser, error) { return os.Open(source) })}}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			_, err := book.Undo(b.Context(), ledger.Undo{})
			require.NoError(b, err)
			b.StartTimer()
			_, err = book.Apply(b.Context(), "s", wants)
			require.NoError(b, err)
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			_, err = book.Apply(b.Context(), "s", wants)
			require.NoError(b, err)
		}
	})
	b.Run("cp and sync", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			require.NoError(b, os.RemoveAll(path+".cp"))
			b.StartTimer()
			require.NoError(b, exec.Command("cp", source, path+".cp").Run())
			require.NoError(b, exec.Command("sync", path+".cp").Run())
		}
	})
}
