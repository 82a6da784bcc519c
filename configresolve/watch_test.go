// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/configdir"
)

// watching is a Watch in progress.
type watching struct {
	t       *testing.T
	updates chan configresolve.Update
	cancel  func()
	done    chan error
}

func watch(t *testing.T, sources ...configresolve.Source) *watching {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watching{t, make(chan configresolve.Update, 10), cancel, make(chan error, 1)}
	go func() {
		w.done <- configresolve.Watch(ctx, configresolve.Resolver{Sources: sources}, func(u configresolve.Update) error {
			w.updates <- u
			return nil
		})
	}()
	return w
}

func (w *watching) next() configresolve.Update {
	w.t.Helper()
	select {
	case u := <-w.updates:
		return u
	case err := <-w.done:
		require.Fail(w.t, "it has ended", "%v", err)
	case <-time.After(20 * time.Second):
		require.Fail(w.t, "nothing is reported")
	}
	return configresolve.Update{}
}

func (w *watching) end() {
	w.t.Helper()
	w.cancel()
	require.ErrorIs(w.t, <-w.done, context.Canceled)
	require.Empty(w.t, w.updates, "nothing else was reported")
}

func publish(t *testing.T, dir string, v values) {
	t.Helper()
	c, err := configresolve.Resolve(t.Context(), configresolve.Static("", v))
	require.NoError(t, err)
	_, err = configdir.Write(t.Context(), dir, c)
	require.NoError(t, err)
}

// lines returns the changed keys, without those that describe the sources.
func lines(u configresolve.Update) (all []string) {
	for _, c := range u.Changes {
		if c.Key != "config-sources" && c.Key != "config-sources-overrides" {
			all = append(all, c.String())
		}
	}
	return all
}

func TestCFG10_WatchReportsAMountedConfigMapsDrift(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "config")
	publish(t, dir, values{"a": "1", "b": "1"})
	before := runtime.NumGoroutine()
	w := watch(t, static("defaults", values{"c": "0"}), configresolve.Optional(configresolve.Dir(dir)))
	require.Len(t, lines(w.next()), 3)

	publish(t, dir, values{"a": "2", "b": "1"})
	require.Equal(t, []string{fmt.Sprintf(`a = "2" from dir:%s (was "1" from dir:%s)`, dir, dir)}, lines(w.next()))

	away := dir + ".away" // an optional source that disappears and comes back
	require.NoError(t, os.Rename(dir, away))
	require.Len(t, lines(w.next()), 2)
	require.NoError(t, os.Rename(away, dir))
	require.Len(t, lines(w.next()), 2)
	w.end()
	for range 1000 { // the watch just reported as ended may still be returning
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
}

func TestWatchReportsWhatCannotBeReadOnceAndThatItIsOver(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "config")
	publish(t, dir, values{"a": "1"})
	w := watch(t, configresolve.Dir(dir))
	w.next()
	away := dir + ".away"
	require.NoError(t, os.Rename(dir, away))
	u := w.next()
	require.ErrorIs(t, u.Err, configresolve.ErrMissing)
	require.Empty(t, u.Changes)
	require.Equal(t, "1", all(u.Config)["a"], "the last good one")
	require.NoError(t, os.Rename(away, dir))
	u = w.next()
	require.NoError(t, u.Err)
	require.Empty(t, u.Changes)
	w.end()
}

func TestWatchOfPlainFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "1")
	require.NoError(t, os.Chtimes(dir, time.Time{}, time.Unix(1, 0)))
	w := watch(t, configresolve.Dir(dir))
	require.Len(t, lines(w.next()), 1)
	write(t, filepath.Join(dir, "b"), "2")
	require.Equal(t, []string{`b = "2" from dir:` + dir}, lines(w.next()))
	write(t, filepath.Join(dir, "b"), "in place")
	require.Len(t, lines(w.next()), 1)
	w.end()
}

func TestCFG10_WatchOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write(t, path, "a: one\n")
	w := watch(t, configresolve.Optional(configresolve.File(path)))
	require.Len(t, lines(w.next()), 1)
	write(t, path, "a: one\nb: two\n")
	require.Equal(t, []string{`b = "two" from file:` + path}, lines(w.next()))
	require.NoError(t, os.Remove(path))
	require.Len(t, lines(w.next()), 2)
	w.end()
}

func TestWatchEnds(t *testing.T) {
	dir := t.TempDir()
	full := errors.New("full")
	r := configresolve.Resolver{Sources: []configresolve.Source{configresolve.Dir(dir)}}
	require.ErrorIs(t, configresolve.Watch(t.Context(), r, func(configresolve.Update) error { return full }), full)

	r.Sources = []configresolve.Source{configresolve.Dir(filepath.Join(dir, "missing"))}
	require.ErrorIs(t, configresolve.Watch(t.Context(), r, func(configresolve.Update) error { return nil }), configresolve.ErrMissing)

	r.Sources = []configresolve.Source{static("s", nil)}
	require.ErrorContains(t, configresolve.Watch(t.Context(), r, func(configresolve.Update) error { return nil }), "none of its sources is a directory or a file")
	require.ErrorContains(t, configresolve.Watch(t.Context(), r, nil), "no function given to report to")
}
