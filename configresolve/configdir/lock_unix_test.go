// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package configdir_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/internal/durable"
)

// held takes the lock of another writer in dir.
func held(t *testing.T, dir string) (unlock func() error) {
	t.Helper()
	d, err := durable.OpenDir(dir)
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	unlock, err = d.TryLock("..lock")
	require.NoError(t, err)
	require.NotNil(t, unlock)
	return unlock
}

// Any process that can read the directory can lock it forever, so that lock is not ours. Only
// root and this user can open ours, and even then the wait for it is bounded.
func TestSEC7_ALockIsNotWaitedForForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := t.TempDir()
		w := newRecorded(t, root, values{"a": "1"})
		require.NoError(t, w.Apply(t.Context()))
		reader, err := os.Open(w.Path)
		require.NoError(t, err)
		defer reader.Close()
		require.NoError(t, unix.Flock(int(reader.Fd()), unix.LOCK_SH))
		start := time.Now()
		w.Config = config(t, values{"a": "2"})
		require.NoError(t, w.Apply(t.Context()))
		requireLayout(t, w.Path, w.Config)

		unlock := held(t, w.Path)
		before := state(t, w.Path)
		for name, f := range map[string]func() error{
			"write": func() error {
				_, err := configdir.Write(t.Context(), w.Path, config(t, values{"a": "3"}))
				return err
			},
			"revert": func() error { return w.Undo(t.Context()) },
		} {
			start := time.Now()
			err := f()
			require.ErrorContains(t, err, "write configuration to "+w.Path, name)
			require.ErrorContains(t, err, "it has held the lock "+w.Path+"/..lock for 10s")
			require.Equal(t, 10*time.Second, time.Since(start).Truncate(time.Second))
			require.Equal(t, before, state(t, w.Path))
		}
		require.NoError(t, unlock())
		require.NoError(t, w.Undo(t.Context()))
		require.NoDirExists(t, w.Path)
		require.Equal(t, 20*time.Second, time.Since(start).Truncate(time.Second), "the other lock was not waited for")
	})
}

// The lock file of a killed writer is removed by the next writer, or with the configuration.
func TestSEC7_TheLockOfAKilledWriterGoes(t *testing.T) {
	for _, reverted := range []bool{false, true} {
		root := t.TempDir()
		w := newRecorded(t, root, values{"a": "1"})
		require.NoError(t, w.Apply(t.Context()))
		require.NoError(t, os.Mkdir(w.Path+"/..lock", 0o700))
		changes, err := w.Check(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"remove leftover " + w.Path + "/..lock"}, changes)
		step := func(step string) { require.NotEqual(t, "remove ..lock", step, "it is this process's meanwhile") }
		if reverted {
			require.NoError(t, w.undoStep(t.Context(), step))
			require.NoDirExists(t, w.Path)
			continue
		}
		require.NoError(t, w.applyStep(t.Context(), step))
		requireLayout(t, w.Path, w.Config)
	}
}

// Another writer follows as soon as the lock is free, each time. Neither has failed.
func TestCFG7_TheNextWriterIsNoFailureOfThisOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	first := configdir.Stepped{Writer: configdir.Writer{Path: dir, Config: config(t, values{"a": "1"})}}
	next := config(t, values{"a": "2", "b": ""})
	first.Step = func(step string) {
		if strings.HasPrefix(step, "leave") {
			require.True(t, writeDir(t, dir, next))
		}
	}
	changed, err := first.Write(t.Context())
	require.NoError(t, err)
	require.True(t, changed)
	requireLayout(t, dir, next)
}

// A check takes no lock: files that disappear meanwhile are no error.
func TestCFG7_CheckBesideAWriter(t *testing.T) {
	dir := t.TempDir()
	configs := [...]*configresolve.Config{config(t, values{"a": "0", "only-0": ""}), config(t, values{"a": "1", "only-1": ""})}
	written := make(chan error)
	go func() {
		for i := range 200 {
			if _, err := configdir.Write(context.Background(), dir, configs[i%2]); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	for {
		select {
		case err := <-written:
			require.NoError(t, err)
			return
		default:
			_, err := ledger.Check(t.Context(), configdir.Writer{Path: dir, Config: configs[0]})
			require.NoError(t, err)
		}
	}
}
