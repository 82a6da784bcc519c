// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

func fileState(content string) ledger.State {
	return ledger.FileWant("/x", 0o644, []byte(content)).To
}

func TestPLAN6_TheLedgersOwnKindsConform(t *testing.T) {
	dir := t.TempDir()
	present, missing := filepath.Join(dir, "present"), filepath.Join(dir, "missing")
	require.NoError(t, os.WriteFile(present, []byte("theirs"), 0o600))
	bootstraptest.ConformKind(t, ledger.File(), missing, fileState("one"), fileState("two"))
	bootstraptest.ConformKind(t, ledger.File(), present, fileState("one"), ledger.State{})
	bootstraptest.ConformKind(t, ledger.Dir(), filepath.Join(dir, "d"), ledger.State{Type: "dir", Mode: 0o755, UID: os.Getuid(), GID: os.Getgid()})
	content, err := os.ReadFile(present)
	require.NoError(t, err)
	require.Equal(t, "theirs", string(content))
	require.NoFileExists(t, missing)
}

// lamp is a kind in memory, of one object, that keeps every rule but what change breaks.
func lamp(value *string, change func(k *ledger.Kind)) *ledger.Kind {
	k := &ledger.Kind{
		Name: "lamp",
		Read: func(context.Context, string) (ledger.State, error) {
			if *value == "" {
				return ledger.State{}, nil
			}
			return ledger.State{Type: "lamp", Value: *value}, nil
		},
		Write: func(ctx context.Context, _ string, to ledger.State) error {
			if ctx.Err() == nil {
				*value = to.Value
			}
			return ctx.Err()
		},
		Describe: func(string, ledger.State, ledger.State) string { return "turn the lamp" },
	}
	change(k)
	return k
}

func TestConformKindCatches(t *testing.T) {
	type state = ledger.State
	for name, tc := range map[string]struct {
		change func(k *ledger.Kind)
		want   string
	}{
		"none": {func(*ledger.Kind) {}, ""},
		"a read that changes": {func(k *ledger.Kind) {
			read, n := k.Read, 0
			k.Read = func(ctx context.Context, o string) (state, error) {
				n++
				s, err := read(ctx, o)
				s.Size = int64(n)
				return s, err
			}
		}, "and read again"},
		"a write that fails": {func(k *ledger.Kind) {
			write := k.Write
			k.Write = func(ctx context.Context, o string, to state) error {
				if ctx.Err() == nil {
					return errBroken
				}
				return write(ctx, o, to)
			}
		}, "broken"},
		"a write that does nothing": {func(k *ledger.Kind) {
			k.Write = func(ctx context.Context, _ string, _ state) error { return ctx.Err() }
		}, "was written over"},
		"a write that changes although its context is done": {func(k *ledger.Kind) {
			write := k.Write
			k.Write = func(ctx context.Context, o string, to state) error {
				_ = write(context.Background(), o, to)
				return ctx.Err()
			}
		}, "has changed it from"},
		"met by anything": {func(k *ledger.Kind) {
			k.Met = func(state, ledger.Want) bool { return true }
		}, "already counts as written"},
		"never the same": {func(k *ledger.Kind) {
			k.Same = func(_, _ state) bool { return false }
		}, "was written over"},
		"always the same": {func(k *ledger.Kind) {
			k.Same = func(_, _ state) bool { return true }
		}, "already counts as written"},
		"two lines": {func(k *ledger.Kind) {
			k.Describe = func(string, state, state) string { return "a\nb" }
		}, "one line"},
		"several canonical names": {func(k *ledger.Kind) {
			k.Canonical = func(o string) (string, error) { return o + "/", nil }
		}, "another one"},
		"not to be owned":   {func(k *ledger.Kind) { k.Owns = func(string) error { return errBroken } }, "broken"},
		"denied":            {func(k *ledger.Kind) { k.Permission = func(context.Context, string) error { return errBroken } }, "broken"},
		"without functions": {func(k *ledger.Kind) { k.Write = nil }, "needs a Name, Read and Write"},
	} {
		t.Run(name, func(t *testing.T) {
			value := "off"
			got := verdictOf(t, func(t testing.TB) {
				bootstraptest.ConformKind(t, lamp(&value, tc.change), "it", state{Type: "lamp", Value: "on"}, state{})
			})
			if tc.want == "" {
				require.Empty(t, got)
				require.Equal(t, "off", value)
				return
			}
			require.Contains(t, got, "kind lamp breaks the contract: ")
			require.Contains(t, got, tc.want)
		})
	}
}
