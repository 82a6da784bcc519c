// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package configdir_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/internal/journaltest"
)

func TestWriteWaitsForAnotherWriter(t *testing.T) {
	dir := t.TempDir()
	other, err := os.Open(dir)
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, unix.Flock(int(other.Fd()), unix.LOCK_EX))

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	c := config(t, values{"a": "1"})
	_, err = configdir.Write(ctx, dir, c)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "wait for another writer")
	require.Empty(t, list(t, dir))

	require.NoError(t, other.Close())
	require.True(t, writeDir(t, dir, c))
}

// Whoever may read the directory can hold its lock for ever.
func TestSEC7_ALockIsNotWaitedForForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := t.TempDir()
		w := configdir.Dir{Path: filepath.Join(root, "d"), Config: config(t, values{"a": "1"}), Journal: journaltest.Open(t, filepath.Join(root, "state"))}
		require.NoError(t, w.Apply(t.Context()))
		other, err := os.Open(w.Path)
		require.NoError(t, err)
		defer other.Close()
		require.NoError(t, unix.Flock(int(other.Fd()), unix.LOCK_SH))

		before := state(t, root)
		for name, f := range map[string]func() error{
			"write": func() error {
				_, err := configdir.Write(t.Context(), w.Path, config(t, values{"a": "2"}))
				return err
			},
			"revert": func() error { return w.Revert(t.Context()) },
		} {
			start := time.Now()
			err := f()
			require.ErrorContains(t, err, name+" configuration ")
			require.ErrorContains(t, err, "somebody has held a lock on "+w.Path+" for 10s")
			require.Equal(t, 10*time.Second, time.Since(start).Truncate(time.Second))
			require.Equal(t, before, state(t, root))
		}
	})
}

func TestWritersAtOnce(t *testing.T) {
	dir := t.TempDir()
	configs := make([]*configresolve.Config, 4)
	errs := make(chan error, len(configs))
	for i := range configs {
		configs[i] = config(t, values{"a": fmt.Sprint(i), fmt.Sprintf("only-%d", i): ""})
		go func() {
			for range 5 {
				if _, err := configdir.Write(context.Background(), dir, configs[i]); err != nil {
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
