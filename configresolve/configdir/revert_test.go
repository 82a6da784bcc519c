// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/internal/journaltest"
)

func TestPLAN6_RevertRestoresAfterManyApplies(t *testing.T) {
	root := t.TempDir()
	dir, stateDir := filepath.Join(root, "d"), filepath.Join(root, "state")
	other(t, dir, "..data_17", values{"older": "1"}, 0o644)
	write(t, filepath.Join(dir, "b"), "a person's file")
	write(t, filepath.Join(dir, "other"), "another")
	require.NoError(t, os.Symlink(strings.Repeat("far/", 300)+"away", filepath.Join(dir, "a")))
	before := tree(t, root)
	j := journaltest.Open(t, stateDir)
	action := func(v values) configdir.Dir {
		return configdir.Dir{Path: dir, Config: config(t, v), Journal: j}
	}
	for _, v := range []values{{"a": "1"}, {"a": "2", "b": "1"}, {"b": "2", "c": ""}, {"c": "3"}, {"c": "3"}, {"a": "1", "b": "3"}, {"a": "4"}} {
		require.NoError(t, action(v).Apply(t.Context()))
		changes, err := action(v).Check(t.Context())
		require.NoError(t, err)
		require.Empty(t, changes)
	}
	lines, err := configdir.Dir{Journal: j}.CheckRevert(t.Context())
	require.NoError(t, err)
	require.Contains(t, lines, "restore the earlier configuration in "+dir)
	require.Contains(t, lines, "restore "+filepath.Join(dir, "b"))
	require.NoError(t, configdir.Dir{Journal: j}.Revert(t.Context()))
	require.Equal(t, before, tree(t, root))
}

// earlier are the layouts that an upgrade from another agent, or a person, may
// leave for the first Apply to find.
var earlier = map[string]func(t *testing.T, dir string){
	"of this package": func(t *testing.T, dir string) { writeDir(t, dir, config(t, values{"a": "older", "gone": ""})) },
	"of a whole ConfigMap": func(t *testing.T, dir string) {
		writeDir(t, dir, wholeConfig(t))
	},
	"of an older init container": func(t *testing.T, dir string) {
		other(t, dir, "..data_1700000001", values{"a": "older", "gone": "\x00\xff\r\n", "empty": ""}, 0o600)
	},
	"of the kubelet, with a link among the values": func(t *testing.T, dir string) {
		other(t, dir, "..2020_01_01_00_00_00.123456789", values{"a": "older", "same": "1"}, 0o640)
		require.NoError(t, os.Symlink("a", filepath.Join(dir, "..data", "alias")))
		require.NoError(t, os.Symlink("..data/alias", filepath.Join(dir, "alias")))
		require.NoError(t, os.Chmod(filepath.Join(dir, "..data"), 0o750|os.ModeSetgid))
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
	"that is a file": func(t *testing.T, dir string) { write(t, filepath.Join(dir, "..data"), "a person's") },
}

// other writes a layout as others do: a data directory of any name, files of
// any mode.
func other(t *testing.T, dir, data string, v values, mode os.FileMode) {
	t.Helper()
	for key, value := range v {
		write(t, filepath.Join(dir, data, key), value)
		require.NoError(t, os.Chmod(filepath.Join(dir, data, key), mode))
		require.NoError(t, os.Symlink("..data/"+key, filepath.Join(dir, key)))
	}
	require.NoError(t, os.Symlink(data, filepath.Join(dir, "..data")))
}

// applied is what is applied over it.
var applied = []values{{"a": "1", "b": "1", "same": "1"}, {"b": "2", "c": ""}, {"a": "3", "c": "", "gone": "3"}}

func TestPLAN6_AnEarlierLayoutComesBack(t *testing.T) {
	for name, start := range earlier {
		for applies := range len(applied) {
			t.Run(name, func(t *testing.T) {
				root := t.TempDir()
				w := configdir.Dir{Path: filepath.Join(root, "d"), Journal: journaltest.Open(t, filepath.Join(root, "state"))}
				start(t, w.Path)
				before := tree(t, root)
				for _, v := range applied[:applies+1] {
					w.Config = config(t, v)
					require.NoError(t, w.Apply(t.Context()))
					requireLayout(t, w.Path, w.Config)
				}
				lines, err := w.CheckRevert(t.Context())
				require.NoError(t, err)
				require.Contains(t, lines, "restore the earlier configuration in "+w.Path)
				require.NoError(t, w.Revert(t.Context()))
				require.Equal(t, before, tree(t, root), "modes, values and names")
				lines, err = w.CheckRevert(t.Context())
				require.NoError(t, err)
				require.Empty(t, lines)
				require.NoError(t, w.Revert(t.Context()))
			})
		}
	}
}

func TestPLAN6_AnEarlierLayoutIsKeptOnceAndPrivate(t *testing.T) {
	root := t.TempDir()
	w := configdir.Dir{Path: filepath.Join(root, "d"), Journal: journaltest.Open(t, filepath.Join(root, "state"))}
	writeDir(t, w.Path, wholeConfig(t))
	for _, v := range applied {
		w.Config = config(t, v)
		require.NoError(t, w.Apply(t.Context()))
	}
	blobs, err := filepath.Glob(filepath.Join(w.Journal.Dir(), "blob.*"))
	require.NoError(t, err)
	require.Len(t, blobs, 1, "144 keys are over what the record itself holds")
	requireMode(t, blobs[0], 0o600)

	write(t, blobs[0], "damaged")
	before := tree(t, root)
	_, err = w.CheckRevert(t.Context())
	require.ErrorContains(t, err, "damaged")
	require.ErrorContains(t, w.Revert(t.Context()), "damaged")
	require.Equal(t, before, tree(t, root), "nothing is undone by guess, nor forgotten")
}

// A data directory whose name nobody is known to use would not be told from a
// person's, if a Revert is killed: it gets a dated name.
func TestPLAN6_OnlyTheNameOfTheDataDirectoryMayDiffer(t *testing.T) {
	root := t.TempDir()
	w := configdir.Dir{Path: filepath.Join(root, "d"), Config: config(t, applied[0]), Journal: journaltest.Open(t, filepath.Join(root, "state"))}
	other(t, w.Path, "..version-7", values{"a": "older", "gone": ""}, 0o600)
	before := tree(t, root)
	require.NoError(t, w.Apply(t.Context()))
	require.NoError(t, w.Revert(t.Context()))

	name, err := os.Readlink(filepath.Join(w.Path, "..data"))
	require.NoError(t, err)
	require.Regexp(t, dated, name)
	after := map[string]string{}
	for path, what := range tree(t, root) {
		after[strings.ReplaceAll(path, name, "..version-7")] = strings.ReplaceAll(what, name, "..version-7")
	}
	require.Equal(t, before, after)
}

// stop runs f, which ends at the n-th change that it tells of as a killed
// process does, and says whether it came so far.
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

func TestPLAN6_StoppedAtEveryPoint(t *testing.T) {
	for name, start := range earlier {
		if name == "of a whole ConfigMap" {
			continue // the same with more keys
		}
		t.Run(name, func(t *testing.T) {
			apply := func(w configdir.Dir) func(func(string)) error {
				return func(step func(string)) error { return configdir.ApplyStep(t.Context(), w, step) }
			}
			revert := func(w configdir.Dir) func(func(string)) error {
				return func(step func(string)) error { return configdir.RevertStep(t.Context(), w, step) }
			}
			for n, more := 0, true; more; n++ {
				root := t.TempDir()
				w := configdir.Dir{Path: filepath.Join(root, "d"), Config: config(t, applied[0]), Journal: journaltest.Open(t, filepath.Join(root, "state"))}
				start(t, w.Path)
				before := tree(t, root)

				inApply, err := stop(n, apply(w))
				require.NoError(t, err)
				if n%2 == 0 { // a later version comes upon it
					w.Config = config(t, applied[1])
					require.NoError(t, w.Apply(t.Context()))
					requireLayout(t, w.Path, w.Config)
				}
				inRevert, err := stop(n, revert(w))
				require.NoError(t, err)
				_, err = stop(n/2, revert(w))
				require.NoError(t, err)
				require.NoError(t, w.Revert(t.Context()))
				require.Equal(t, before, tree(t, root), "stopped at change %d", n)
				more = inApply || inRevert
			}
		})
	}
}

func TestPLAN6_RevertLeavesWhatSomebodyChanged(t *testing.T) {
	for _, start := range []func(t *testing.T, dir string){
		func(t *testing.T, dir string) { require.NoError(t, os.Mkdir(dir, 0o755)) }, earlier["of this package"],
	} {
		root := t.TempDir()
		dir, stateDir := filepath.Join(root, "d"), filepath.Join(root, "state")
		start(t, dir)
		action := configdir.Dir{Path: dir, Config: config(t, values{"a": "1"}), Journal: journaltest.Open(t, stateDir)}
		require.NoError(t, action.Apply(t.Context()))
		theirs := config(t, values{"a": "theirs"})
		writeDir(t, dir, theirs)
		lines, err := action.CheckRevert(t.Context())
		require.Empty(t, lines, "Revert would do nothing")
		for _, err := range []error{err, action.Revert(t.Context()), action.Revert(t.Context())} {
			require.EqualError(t, err, "revert configuration in "+dir+": it is no longer as it was left, so it is kept")
		}
		requireLayout(t, dir, theirs)
	}
}

func TestPLAN6_AnInterruptedApplyIsDecidedByLooking(t *testing.T) {
	root := t.TempDir()
	w := configdir.Dir{Path: filepath.Join(root, "d"), Config: config(t, values{"a": "1"}), Journal: journaltest.Open(t, filepath.Join(root, "state"))}
	require.NoError(t, os.Mkdir(w.Path, 0o755))
	stopped, err := stop(0, func(step func(string)) error { return configdir.ApplyStep(t.Context(), w, step) })
	require.NoError(t, err)
	require.True(t, stopped)
	theirs := config(t, values{"a": "theirs"})
	writeDir(t, w.Path, theirs)
	require.ErrorContains(t, w.Revert(t.Context()), "no longer as it was left")
	requireLayout(t, w.Path, theirs)
}

func TestPLAN6_WhatTookThePlaceOfALinkStays(t *testing.T) {
	root := t.TempDir()
	w := configdir.Dir{Path: filepath.Join(root, "d"), Config: config(t, values{"a": "1"}), Journal: journaltest.Open(t, filepath.Join(root, "state"))}
	writeDir(t, w.Path, config(t, values{"a": "older", "gone": "older"}))
	require.NoError(t, w.Apply(t.Context()))
	theirs := write(t, filepath.Join(w.Path, "gone"), "theirs")

	lines, err := w.CheckRevert(t.Context())
	require.Equal(t, []string{"restore the earlier configuration in " + w.Path}, lines)
	for _, err := range []error{err, w.Revert(t.Context())} {
		require.EqualError(t, err, "revert configuration in "+w.Path+": "+theirs+" is no longer as it was left, so it is kept")
	}
	content, err := os.ReadFile(theirs)
	require.NoError(t, err)
	require.Equal(t, "theirs", string(content))
	content, err = os.ReadFile(filepath.Join(w.Path, "a"))
	require.NoError(t, err)
	require.Equal(t, "older", string(content), "the rest is done")
}

// What could not be brought back is not replaced.
func TestPLAN6_ADirectoryAmongTheEarlierValues(t *testing.T) {
	root := t.TempDir()
	w := configdir.Dir{Path: filepath.Join(root, "d"), Config: config(t, values{"a": "1"}), Journal: journaltest.Open(t, filepath.Join(root, "state"))}
	other(t, w.Path, "..data_17", values{"a": "older"}, 0o644)
	write(t, filepath.Join(w.Path, "..data_17", "sub", "deep"), "x")
	before := tree(t, w.Path)
	require.ErrorContains(t, w.Apply(t.Context()), filepath.Join(w.Path, "..data", "sub")+" is a directory, which could not be brought back")
	require.Equal(t, before, tree(t, w.Path))
}

func TestCheckRevertNamesWhatRevertDoes(t *testing.T) {
	root := t.TempDir()
	w := configdir.Dir{Path: filepath.Join(root, "made", "d"), Config: config(t, values{"a": "1"}), Journal: journaltest.Open(t, filepath.Join(root, "state"))}
	require.NoError(t, w.Apply(t.Context()))
	check := func(want string) []string {
		before := state(t, root)
		lines, err := w.CheckRevert(t.Context())
		if want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, want)
		}
		require.Equal(t, before, state(t, root))
		return lines
	}
	made := filepath.Join(root, "made")
	require.Equal(t, []string{"remove configuration from " + w.Path, "remove directory " + w.Path, "remove directory " + made}, check(""))
	write(t, filepath.Join(w.Path, "theirs"), "x")
	inUse := "directory " + w.Path + " is kept: it holds theirs"
	require.Equal(t, []string{"remove configuration from " + w.Path}, check(inUse), "the directory is in use")
	require.NoError(t, os.Rename(made, made+"-away"))
	require.Empty(t, check(""), "it is gone")
	require.NoError(t, os.Rename(made+"-away", made))
	require.EqualError(t, w.Revert(t.Context()), inUse)
	require.Equal(t, []string{"theirs"}, list(t, w.Path))
}

func TestPLAN6_LinksThatLeadNowhereGo(t *testing.T) {
	root := t.TempDir()
	w := configdir.Dir{Path: filepath.Join(root, "d"), Config: config(t, values{"a": "1"}), Journal: journaltest.Open(t, filepath.Join(root, "state"))}
	before := tree(t, root)
	require.NoError(t, w.Apply(t.Context()))
	data, err := os.Readlink(filepath.Join(w.Path, "..data"))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(filepath.Join(w.Path, data)))
	require.NoError(t, w.Revert(t.Context()))
	require.Equal(t, before, tree(t, root))
}

// A run that was killed after it had reached what it began is not forgotten by
// the next, which is killed before it has.
func TestPLAN6_StoppedTwice(t *testing.T) {
	apply := func(w configdir.Dir) func(func(string)) error {
		return func(step func(string)) error { return configdir.ApplyStep(t.Context(), w, step) }
	}
	for n, more := 0, true; more; n++ {
		for _, m := range []int{0, 1, n} {
			root := t.TempDir()
			w := configdir.Dir{Path: filepath.Join(root, "d"), Journal: journaltest.Open(t, filepath.Join(root, "state"))}
			earlier["with a file in the place of a key"](t, w.Path)
			before := tree(t, root)
			var err error
			w.Config = config(t, applied[0])
			more, err = stop(n, apply(w))
			require.NoError(t, err)
			w.Config = config(t, applied[1])
			_, err = stop(m, apply(w))
			require.NoError(t, err)
			require.NoError(t, w.Revert(t.Context()), "stopped at change %d, and then at %d", n, m)
			require.Equal(t, before, tree(t, root), "stopped at change %d, and then at %d", n, m)
		}
	}
}

// Two steps write one directory: the older one's Revert leaves what it found to
// the newer.
func TestPLAN6_TwoStepsOfOneDirectory(t *testing.T) {
	for name, order := range map[string][]int{"the newer first": {1, 0}, "the older first": {0, 1}} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			j := journaltest.Open(t, filepath.Join(root, "state"))
			var steps []configdir.Dir
			for i, v := range []values{{"a": "1", "b": "1", "c": "1"}, {"b": "2", "c": "2", "d": "2"}} {
				steps = append(steps, configdir.Dir{Path: filepath.Join(root, "deep", "d"), Config: config(t, v), Journal: j.Step(fmt.Sprint("step-", i))})
			}
			earlier["with a file in the place of a key"](t, steps[0].Path)
			write(t, filepath.Join(steps[0].Path, "d"), "a person's, too")
			before := tree(t, root)
			for _, w := range steps {
				require.NoError(t, w.Apply(t.Context()))
				requireLayout(t, w.Path, w.Config, others(w, "d")...)
			}
			require.NoError(t, steps[order[0]].Revert(t.Context()))
			left := steps[order[1]]
			requireLayout(t, left.Path, left.Config, others(left, "d")...)
			require.NoError(t, left.Revert(t.Context()))
			require.Equal(t, before, tree(t, root))
		})
	}
}

// others are those names that are no keys of w.
func others(w configdir.Dir, names ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		_, key := w.Config.Lookup(name)
		return key
	})
}
