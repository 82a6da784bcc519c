// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package configresolve_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/configresolve"
)

func TestWriteDirWaitsForAnotherWriter(t *testing.T) {
	dir := t.TempDir()
	other, err := os.Open(dir)
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, unix.Flock(int(other.Fd()), unix.LOCK_EX))

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	c := config(t, values{"a": "1"})
	_, err = configresolve.WriteDir(ctx, dir, c)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "wait for another writer")
	require.Empty(t, list(t, dir))

	require.NoError(t, other.Close())
	require.True(t, writeDir(t, dir, c))
}

func TestWritersAtOnce(t *testing.T) {
	dir := t.TempDir()
	configs := make([]*configresolve.Config, 4)
	errs := make(chan error, len(configs))
	for i := range configs {
		configs[i] = config(t, values{"a": fmt.Sprint(i), fmt.Sprintf("only-%d", i): ""})
		go func() {
			for range 5 {
				if _, err := configresolve.WriteDir(context.Background(), dir, configs[i]); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range configs {
		require.NoError(t, <-errs)
	}
	version, err := os.ReadFile(dir + "/a")
	require.NoError(t, err)
	requireLayout(t, dir, configs[version[0]-'0'])
}
