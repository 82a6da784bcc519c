// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package configdir_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/internal/testns"
)

// costly replaces files by objects that take forever to read.
var costly = map[string]func(path string) error{
	"FIFO": func(path string) error { return unix.Mkfifo(path, 0o644) },
	"large file": func(path string) error {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			return err
		}
		return os.Truncate(path, 1<<40)
	},
}

func TestSEC6_WhatTakesForEverToReadIsNotRead(t *testing.T) {
	for kind, place := range costly {
		for _, name := range []string{"a", "..data", "..data/a", "..data/another"} {
			for _, records := range []bool{false, true} {
				t.Run(fmt.Sprint(kind, " ", name, " ", records), func(t *testing.T) {
					root := t.TempDir()
					w := newRecorded(t, root, values{"a": "1"})
					writeDir(t, w.Path, config(t, values{"a": "older", "b": ""}))
					path := filepath.Join(w.Path, name)
					require.NoError(t, os.RemoveAll(path))
					require.NoError(t, place(path))
					changes, err := w.Check(t.Context())
					require.NoError(t, err)
					require.NotEmpty(t, changes)
					if !records {
						w.state = ""
					}
					require.NoError(t, w.Apply(t.Context()))
					requireLayout(t, w.Path, w.Config)
					if records {
						require.NoError(t, w.Undo(t.Context()))
						require.Empty(t, list(t, w.Path))
					}
				})
			}
		}
	}
}

// Objects that replaced written files are not read to the end either.
func TestSEC6_WhatTookThePlaceIsNotRead(t *testing.T) {
	for kind, place := range costly {
		for _, name := range []string{"a", "..data/a", "..data/another"} {
			t.Run(kind+" "+name, func(t *testing.T) {
				root := t.TempDir()
				w := newRecorded(t, root, values{"a": "1"})
				require.NoError(t, w.Apply(t.Context()))
				path := filepath.Join(w.Path, name)
				require.NoError(t, os.RemoveAll(path))
				require.NoError(t, place(path))

				_, err := w.CheckUndo(t.Context())
				for _, err := range []error{err, w.Undo(t.Context())} {
					require.ErrorIs(t, err, ledger.ErrChanged)
				}
				_, err = os.Lstat(path)
				require.NoError(t, err)
			})
		}
	}
}

// An attacker who can write to the directory replaces its content with links to another
// directory, before any single change of a write or a revert.
func TestSEC1_NothingOutsideIsTouched(t *testing.T) {
	for n, more := 0, true; more; n++ {
		root := t.TempDir()
		w, outside := newRecorded(t, root, values{"a": "1", "b": ""}), filepath.Join(root, "outside")
		for _, key := range []string{"a", "b", "secret"} {
			write(t, filepath.Join(outside, key), "precious")
			require.NoError(t, os.Chmod(filepath.Join(outside, key), 0o600))
		}
		before := tree(t, outside)
		other(t, w.Path, "..2017", values{"a": "older", "gone": ""}, 0o644)

		step, left := 0, n
		attack := func(string) {
			if step++; left == 0 {
				exchange(t, w.Path, outside)
			}
			left--
		}
		_ = w.applyStep(t.Context(), attack) // it may fail
		_ = w.undoStep(t.Context(), attack)
		more = n < step

		require.Equal(t, before, tree(t, outside), "exchanged before change %d", n)
		for path, what := range tree(t, root) {
			if !strings.HasPrefix(path, outside) {
				require.NotContains(t, what, "precious", path)
				require.NotContains(t, what, base64.StdEncoding.EncodeToString([]byte("precious"))[:8], path)
			}
		}
		require.Greater(t, step, 10)
	}
}

// exchange replaces each data directory, and each file in it, with a link into outside.
func exchange(t *testing.T, dir, outside string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !e.IsDir() {
			continue
		}
		files, err := os.ReadDir(path)
		require.NoError(t, err)
		for _, f := range files {
			require.NoError(t, os.Remove(filepath.Join(path, f.Name())))
			require.NoError(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(path, f.Name())))
		}
		require.NoError(t, os.Rename(path, path+"-away"))
		require.NoError(t, os.Symlink(outside, path))
	}
}

func TestSEC1_AnUntrustedLinkToTheDirectoryIsNotFollowed(t *testing.T) {
	if os.Geteuid() != 0 {
		testns.Skip(t, "needs root, to give a link another owner")
	}
	root := t.TempDir()
	target, theirs := filepath.Join(root, "target"), filepath.Join(root, "theirs")
	require.NoError(t, os.Mkdir(target, 0o755))
	require.NoError(t, os.Mkdir(theirs, 0o755))
	require.NoError(t, os.Symlink(target, filepath.Join(theirs, "link")))
	require.NoError(t, os.Chown(theirs, 4242, 4242))
	require.NoError(t, os.Lchown(filepath.Join(theirs, "link"), 4242, 4242))
	for _, dir := range []string{"link", "link/below"} {
		for _, state := range []string{"", filepath.Join(root, "state")} {
			w := recorded{configdir.Writer{Path: filepath.Join(theirs, dir), Config: config(t, values{"a": "1"})}, t, state, "agent"}
			_, err := w.Check(t.Context())
			for _, err := range []error{err, w.Apply(t.Context())} {
				require.ErrorContains(t, err, "write configuration to "+w.Path)
				require.ErrorContains(t, err, `"link" on the way is a symbolic link that others may change`)
			}
			require.Empty(t, list(t, target))
		}
	}
	own := filepath.Join(root, "own")
	require.NoError(t, os.Symlink(target, own))
	require.True(t, writeDir(t, own, config(t, values{"a": "1"})), "only this user can have put it there")
}

func TestSEC3_WhatNoConfigurationCanHaveRecordedIsNotObeyed(t *testing.T) {
	for object, want := range map[string]string{
		"/etc/agent":  "",
		"agent":       "not an absolute, clean path",
		"/":           "not an absolute, clean path",
		"/proc/1/cwd": "below /proc",
	} {
		err := configdir.Kind().Owns(object)
		if want == "" {
			require.NoError(t, err, object)
		} else {
			require.ErrorContains(t, err, want, object)
		}
	}
}

func TestSEC6_TooManyKeys(t *testing.T) {
	v := values{}
	for i := range 10_000 {
		v[fmt.Sprint(i)] = ""
	}
	w := configdir.Writer{Path: filepath.Join(t.TempDir(), "d"), Config: config(t, v)}
	_, err := ledger.Check(t.Context(), w)
	for _, err := range []error{err, ledger.Apply(t.Context(), w)} {
		require.EqualError(t, err, "write configuration to "+w.Path+": 10002 keys are more than 10000")
	}
	require.NoDirExists(t, w.Path)
}
