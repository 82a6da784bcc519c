// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// earlier holds the layouts that another agent or a person may leave for the first Apply to
// find.
var earlier = map[string]func(t *testing.T, dir string){
	"of this package": func(t *testing.T, dir string) { writeDir(t, dir, config(t, values{"a": "older", "gone": ""})) },
	"of an older init container": func(t *testing.T, dir string) {
		other(t, dir, "..data_1700000001", values{"a": "older", "gone": "\x00\xff\r\n", "empty": ""}, 0o600)
	},
	"of the kubelet, with a link among the values": func(t *testing.T, dir string) {
		other(t, dir, "..2020_01_01_00_00_00.123456789", values{"a": "older", "same": "1"}, 0o640)
		require.NoError(t, os.Symlink("a", filepath.Join(dir, "..data", "alias")))
		require.NoError(t, os.Symlink("..data/alias", filepath.Join(dir, "alias")))
	},
	"with the same values": func(t *testing.T, dir string) {
		other(t, dir, "..data_17", config(t, applied[0]).Data(), 0o600)
	},
	"with links missing, too many, elsewhere": func(t *testing.T, dir string) {
		other(t, dir, "..data_17", values{"a": "older", "b": "older", "same": "1"}, 0o644)
		require.NoError(t, os.Remove(filepath.Join(dir, "a")))
		require.NoError(t, os.Remove(filepath.Join(dir, "b")))
		require.NoError(t, os.Symlink("..data/same", filepath.Join(dir, "b")))
		require.NoError(t, os.Symlink("..data/nowhere", filepath.Join(dir, "nowhere")))
	},
	"with a file in the place of a key": func(t *testing.T, dir string) {
		other(t, dir, "..data_17", values{"a": "older", "b": "older"}, 0o644)
		require.NoError(t, os.Remove(filepath.Join(dir, "b")))
		write(t, filepath.Join(dir, "b"), "a person's")
	},
	"that leads nowhere": func(t *testing.T, dir string) {
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.Symlink("..data_17", filepath.Join(dir, "..data")))
		require.NoError(t, os.Symlink("..data/a", filepath.Join(dir, "a")))
	},
	"that leads to no text": func(t *testing.T, dir string) {
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.Symlink("..\xff", filepath.Join(dir, "..data")))
	},
}

// other writes a layout as other programs do: a data directory of any name, files of any mode.
func other(t *testing.T, dir, data string, v values, mode os.FileMode) {
	t.Helper()
	for key, value := range v {
		write(t, filepath.Join(dir, data, key), value)
		require.NoError(t, os.Chmod(filepath.Join(dir, data, key), mode))
		require.NoError(t, os.Symlink("..data/"+key, filepath.Join(dir, key)))
	}
	require.NoError(t, os.Symlink(data, filepath.Join(dir, "..data")))
}

// applied are the configurations applied over it, in order.
var applied = []values{{"a": "1", "b": "1", "same": "1"}, {"b": "2", "c": ""}, {"a": "3", "c": "", "gone": "3"}}

// emptied returns before without the content of dir.
func emptied(before map[string]string, dir string) map[string]string {
	after := maps.Clone(before)
	maps.DeleteFunc(after, func(path, _ string) bool { return strings.HasPrefix(path, dir+"/") })
	return after
}

func TestPLAN6_AnEarlierLayoutIsNotRebuilt(t *testing.T) {
	for name, start := range earlier {
		for applies := range len(applied) {
			t.Run(name, func(t *testing.T) {
				root := t.TempDir()
				w := newRecorded(t, root, nil)
				start(t, w.Path)
				theirs := write(t, filepath.Join(w.Path, "not a key"), "another program's")
				before := tree(t, root)
				want := emptied(before, w.Path)
				want[theirs] = before[theirs]
				for _, v := range applied[:applies+1] {
					w.Config = config(t, v)
					require.NoError(t, w.Apply(t.Context()))
					requireLayout(t, w.Path, w.Config, "not a key")
				}
				require.Equal(t, []string{"ledger"}, list(t, w.state), "no copy is kept")
				lines, err := w.CheckUndo(t.Context())
				require.NoError(t, err)
				require.Equal(t, []string{"remove configuration from " + w.Path}, lines)
				require.NoError(t, w.Undo(t.Context()))
				require.Equal(t, want, tree(t, root))
				lines, err = w.CheckUndo(t.Context())
				require.NoError(t, err)
				require.Empty(t, lines)
				require.NoError(t, w.Undo(t.Context()))
			})
		}
	}
}

// A configuration that was correct except for a link belongs to whoever wrote it.
func TestPLAN6_WhatWasOnlyPutRightStays(t *testing.T) {
	root := t.TempDir()
	w := newRecorded(t, root, values{"a": "1"})
	writeDir(t, w.Path, w.Config)
	require.NoError(t, os.Remove(filepath.Join(w.Path, "a")))
	require.NoError(t, w.Apply(t.Context()))
	lines, err := w.CheckUndo(t.Context())
	require.NoError(t, err)
	require.Empty(t, lines)
	require.NoError(t, w.Undo(t.Context()))
	requireLayout(t, w.Path, w.Config)
	require.NoDirExists(t, w.state)
}

// stop runs f and, like a kill, ends it at the n-th change that f reports. It returns whether f
// got that far.
func stop(n int, f func(step func(string)) error) (stopped bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, ours := r.(crash); !ours {
				panic(r)
			}
			stopped = true
		}
	}()
	return false, f(func(string) {
		if n--; n < 0 {
			panic(crash{})
		}
	})
}

// shown is the target of ..data, or empty if there is no such link.
func shown(dir string) string {
	target, _ := os.Readlink(filepath.Join(dir, "..data"))
	return target
}

// requireUndone checks that a revert leaves nothing of an Apply. An earlier configuration is
// gone if it was replaced; otherwise it is as before. A file in the place of a key's link may
// remain.
func requireUndone(t *testing.T, root, dir string, before map[string]string, replaced bool, stopped string) {
	t.Helper()
	after := tree(t, root)
	for path, what := range after {
		require.Equal(t, before[path], what, "%s: %s", path, stopped)
	}
	for path, what := range before {
		name, inside := strings.CutPrefix(path, dir+"/")
		switch data, link := strings.HasPrefix(name, ".."), strings.HasPrefix(what, "L"); {
		case !inside, data && !replaced:
			require.Contains(t, after, path, stopped)
		case data, link && replaced:
			require.NotContains(t, after, path, stopped)
		}
	}
}

func TestPLAN6_StoppedAtEveryPoint(t *testing.T) {
	starts := maps.Clone(earlier)
	starts["of nobody"] = func(*testing.T, string) {}
	starts["that is empty"] = func(t *testing.T, dir string) { require.NoError(t, os.Mkdir(dir, 0o755)) }
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			apply := func(w recorded) func(func(string)) error {
				return func(step func(string)) error { return w.applyStep(t.Context(), step) }
			}
			revert := func(w recorded) func(func(string)) error {
				return func(step func(string)) error { return w.undoStep(t.Context(), step) }
			}
			for n, more := 0, true; more; n++ {
				root := t.TempDir()
				w := newRecorded(t, root, applied[0])
				start(t, w.Path)
				before, was := tree(t, root), shown(w.Path)

				inApply, err := stop(n, apply(w))
				require.NoError(t, err)
				if n%2 == 0 { // a later version finds it
					w.Config = config(t, applied[1])
					require.NoError(t, w.Apply(t.Context()))
					requireLayout(t, w.Path, w.Config)
				}
				replaced := shown(w.Path) != was
				inRevert, err := stop(n, revert(w))
				require.NoError(t, err)
				_, err = stop(n/2, revert(w))
				require.NoError(t, err)
				require.NoError(t, w.Undo(t.Context()))
				requireUndone(t, root, w.Path, before, replaced, fmt.Sprint("stopped at change ", n))
				more = inApply || inRevert
			}
		})
	}
}

func TestPLAN6_RevertLeavesWhatOthersChanged(t *testing.T) {
	for _, start := range []func(t *testing.T, dir string){
		func(t *testing.T, dir string) { require.NoError(t, os.Mkdir(dir, 0o755)) }, earlier["of this package"],
	} {
		root := t.TempDir()
		w := newRecorded(t, root, values{"a": "1"})
		start(t, w.Path)
		require.NoError(t, w.Apply(t.Context()))
		theirs := config(t, values{"a": "2"}) // of the same size
		writeDir(t, w.Path, theirs)
		lines, err := w.CheckUndo(t.Context())
		require.Empty(t, lines, "Revert would do nothing")
		for _, err := range []error{err, w.Undo(t.Context()), w.Undo(t.Context())} {
			require.EqualError(t, err, w.Path+" is no longer as it was left, so it is kept")
		}
		requireLayout(t, w.Path, theirs)
	}
}

func TestPLAN6_WhatTookThePlaceOfALinkStays(t *testing.T) {
	for _, isDirOurs := range []bool{false, true} {
		w := newRecorded(t, t.TempDir(), values{"a": "1", "b": "1"})
		if !isDirOurs {
			require.NoError(t, os.Mkdir(w.Path, 0o755))
		}
		require.NoError(t, w.Apply(t.Context()))
		theirs := filepath.Join(w.Path, "b")
		require.NoError(t, os.Remove(theirs))
		write(t, theirs, "theirs")

		lines, err := w.CheckUndo(t.Context())
		require.Equal(t, []string{"remove configuration from " + w.Path + `, but not another program's file in the place of "b"`}, lines)
		for _, err := range []error{err, w.Undo(t.Context()), w.Undo(t.Context())} {
			if isDirOurs {
				require.EqualError(t, err, w.Path+" is no longer as it was left: it holds b, and goes once that has gone")
			} else {
				require.NoError(t, err)
			}
		}
		content, err := os.ReadFile(theirs)
		require.NoError(t, err)
		require.Equal(t, "theirs", string(content))
		require.Equal(t, []string{"b"}, list(t, w.Path), "the rest is done")
	}
}

func TestPLAN6_ADirectoryThatIsGoneNeedsNoRevert(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		w := newRecorded(t, t.TempDir(), values{"a": "1"})
		require.NoError(t, os.Mkdir(w.Path, 0o755))
		require.NoError(t, w.Apply(t.Context()))
		require.NoError(t, os.RemoveAll(w.Path))
		if replaced {
			write(t, w.Path, "another's file")
		}
		lines, err := w.CheckUndo(t.Context())
		require.NoError(t, err)
		require.Empty(t, lines)
		require.NoError(t, w.Undo(t.Context()))
	}
}

func TestPLAN6_LinksThatLeadNowhereGo(t *testing.T) {
	root := t.TempDir()
	w := newRecorded(t, root, values{"a": "1"})
	before := tree(t, root)
	require.NoError(t, w.Apply(t.Context()))
	data, err := os.Readlink(filepath.Join(w.Path, "..data"))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(filepath.Join(w.Path, data)))
	require.NoError(t, w.Undo(t.Context()))
	require.Equal(t, before, tree(t, root))
}
