// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/configdir"
)

func writeDir(t *testing.T, dir string, c *configresolve.Config) (changed bool) {
	t.Helper()
	changed, err := configdir.Write(t.Context(), dir, c)
	require.NoError(t, err)
	return changed
}

var dated = regexp.MustCompile(`^\.\.\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d\.\d+$`)

// requireLayout checks that dir holds exactly c, plus the extra names in others.
func requireLayout(t *testing.T, dir string, c *configresolve.Config, others ...string) {
	t.Helper()
	want := c.Data()
	data, err := os.Readlink(filepath.Join(dir, "..data"))
	require.NoError(t, err)
	require.Regexp(t, dated, data)

	names := append(append(slices.Collect(maps.Keys(want)), "..data", data), others...)
	slices.Sort(names)
	require.Equal(t, names, list(t, dir), "one data directory, a link for each key, nothing else")
	require.Equal(t, slices.Sorted(maps.Keys(want)), list(t, filepath.Join(dir, data)))
	for key, value := range want {
		target, err := os.Readlink(filepath.Join(dir, key))
		require.NoError(t, err)
		require.Equal(t, "..data/"+key, target)
		got, err := os.ReadFile(filepath.Join(dir, key))
		require.NoError(t, err, "a dangling link")
		require.Equal(t, value, string(got))
		requireMode(t, filepath.Join(dir, data, key), 0o644)
	}
	requireMode(t, filepath.Join(dir, data), fs.ModeDir|0o755)
}

func requireMode(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Equal(t, mode, info.Mode(), path)
	}
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// state describes everything in dir, to show that nothing was written.
func state(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&b, path, info.Mode(), info.Size(), info.ModTime().UnixNano())
		return nil
	}))
	return b.String()
}

func wholeConfig(t *testing.T) *configresolve.Config {
	t.Helper()
	c, err := configresolve.Resolve(t.Context(), configresolve.File("../testdata/configmap.yaml"))
	require.NoError(t, err)
	return c
}

func TestCFG7_WritesAWholeConfigMap(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "config")
	c := wholeConfig(t)
	require.True(t, writeDir(t, dir, c))
	requireLayout(t, dir, c)
	require.Len(t, c.Data(), 146)
	requireMode(t, dir, fs.ModeDir|0o755)
	requireMode(t, filepath.Dir(dir), fs.ModeDir|0o755)

	again, err := configresolve.Resolve(t.Context(), configresolve.Dir(dir))
	require.NoError(t, err)
	require.Equal(t, all(c), all(again), "read back as a mounted ConfigMap")
}

func TestCFG7_TwoRunsWithinASecond(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		c := config(t, values{"run": fmt.Sprint(i), fmt.Sprintf("only-in-%d", i): "", "text": "a\n\n  ", "bytes": "\x00\xff\r\n", ".dot": "1"})
		require.True(t, writeDir(t, dir, c))
		requireLayout(t, dir, c)
	}
}

// Leftovers of other programs, and of a person, are repaired.
func TestCFG7_RepairsWhatItFinds(t *testing.T) {
	in := func(dir string, names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	relinked := func(target string, names ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(in(dir, names...)))
			require.NoError(t, os.Symlink(target, in(dir, names...)))
		}
	}
	c := values{"a": "1", "b": "2"}
	for name, disturb := range map[string]func(t *testing.T, dir string){
		"a regular file in a key's place": func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(in(dir, "a")))
			write(t, in(dir, "a"), "mine")
		},
		"a link elsewhere in a key's place": relinked("/etc/hostname", "a"),
		"a key's link is missing":           func(t *testing.T, dir string) { require.NoError(t, os.Remove(in(dir, "a"))) },
		"a value was edited":                func(t *testing.T, dir string) { write(t, in(dir, "a"), "edited") },
		"a value was truncated":             func(t *testing.T, dir string) { write(t, in(dir, "a"), "") },
		"a file too many":                   func(t *testing.T, dir string) { write(t, in(dir, "..data", "c"), "3") },
		"a file was made unreadable":        func(t *testing.T, dir string) { require.NoError(t, os.Chmod(in(dir, "a"), 0o600)) },
		"the directory's mode":              func(t *testing.T, dir string) { require.NoError(t, os.Chmod(in(dir, "..data"), 0o700)) },
		"a value is a link":                 relinked("b", "..data", "a"),
		"..data is missing":                 func(t *testing.T, dir string) { require.NoError(t, os.Remove(in(dir, "..data"))) },
		"..data leads nowhere":              relinked("..2020_01_01_00_00_00.1", "..data"),
		"..data leads out":                  relinked("../..", "..data"),
		"..data leads to itself":            relinked("..data", "..data"),
		"..data is a file": func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(in(dir, "..data")))
			write(t, in(dir, "..data"), "x")
		},
		"dated directories of the kubelet": func(t *testing.T, dir string) {
			write(t, in(dir, "..2020_01_01_00_00_00.123456789", "old"), "x")
			require.NoError(t, os.Symlink("..2020_01_01_00_00_00.123456789", in(dir, "..data_tmp")))
		},
		"directories of an older init container": func(t *testing.T, dir string) {
			write(t, in(dir, "..data_1700000000", "old"), "x")
			write(t, in(dir, "..data_1700000001", "a"), "x")
			require.NoError(t, os.Symlink("..data_1700000001", in(dir, "..data.tmp")))
			require.NoError(t, os.Symlink("..data/old", in(dir, "old")))
		},
		"a link of ours on its way": func(t *testing.T, dir string) {
			require.NoError(t, os.Symlink("..data/a", in(dir, "..tmp.42")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeDir(t, dir, config(t, c))
			disturb(t, dir)
			changes, err := ledger.Check(t.Context(), configdir.Writer{Path: dir, Config: config(t, c)})
			require.NoError(t, err)
			require.NotEmpty(t, changes)
			require.True(t, writeDir(t, dir, config(t, c)))
			requireLayout(t, dir, config(t, c))
			require.False(t, writeDir(t, dir, config(t, c)))
			require.FileExists(t, "/etc/hostname")
		})
	}
}

func TestCFG7_LeavesOtherFilesAlone(t *testing.T) {
	dir := t.TempDir()
	writeDir(t, dir, config(t, values{"a": "0"}))
	write(t, filepath.Join(dir, "mine"), "x")
	write(t, filepath.Join(dir, "..mine"), "x")
	write(t, filepath.Join(dir, "sub", "deep"), "x")
	require.NoError(t, os.Symlink("mine", filepath.Join(dir, "link")))
	for _, v := range []string{"1", "2"} {
		c := config(t, values{"a": v})
		writeDir(t, dir, c)
		requireLayout(t, dir, c, "mine", "..mine", "sub", "link")
	}
	require.FileExists(t, filepath.Join(dir, "sub", "deep"))
}

func TestCFG7_ADirectoryInAKeysPlace(t *testing.T) {
	for _, key := range []string{"a", "..data", "..data/sub"} {
		dir := t.TempDir()
		if key != "..data" {
			writeDir(t, dir, config(t, values{"b": "1"}))
		}
		write(t, filepath.Join(dir, key, "precious"), "x")
		before := state(t, dir)
		c := config(t, values{"a": "1", "b": "2"})
		_, err := configdir.Write(t.Context(), dir, c)
		require.ErrorContains(t, err, filepath.Join(dir, key)+" is a directory")
		_, err = ledger.Check(t.Context(), configdir.Writer{Path: dir, Config: c})
		require.ErrorContains(t, err, filepath.Join(dir, key)+" is a directory")
		require.Equal(t, before, state(t, dir), "nothing changed")
	}
}

// A directory that holds no configuration, such as /etc with its passwd, is left alone.
func TestCFG7_ADirectoryOfSomethingElseIsRefused(t *testing.T) {
	c := config(t, values{"passwd": "1", "debug": "true"})
	for name, fill := range map[string]func(dir string){
		"file":           func(dir string) { write(t, filepath.Join(dir, "passwd"), "root:x:0:0") },
		"another's file": func(dir string) { write(t, filepath.Join(dir, "hosts"), "") },
		"directory":      func(dir string) { write(t, filepath.Join(dir, "ssh", "sshd_config"), "") },
		"link":           func(dir string) { require.NoError(t, os.Symlink("../run/debug", filepath.Join(dir, "debug"))) },
		"..data of no one": func(dir string) {
			write(t, filepath.Join(dir, "..data"), "")
			write(t, filepath.Join(dir, "hosts"), "")
		},
		"..data alone":     func(dir string) { write(t, filepath.Join(dir, "..data"), "") },
		"..data elsewhere": func(dir string) { require.NoError(t, os.Symlink("/etc/hostname", filepath.Join(dir, "..data"))) },
	} {
		dir := t.TempDir()
		fill(dir)
		before := state(t, dir)
		_, err := ledger.Check(t.Context(), configdir.Writer{Path: dir, Config: c})
		for _, err := range []error{err, ledger.Apply(t.Context(), configdir.Writer{Path: dir, Config: c})} {
			require.ErrorContains(t, err, "write configuration to "+dir+": it is not a configuration directory, and contains "+dir+"/", name)
			require.ErrorContains(t, err, "move it away, or name a new or an empty directory", name)
		}
		require.Equal(t, before, state(t, dir), name)
	}
	volume := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(volume, "lost+found"), 0o700))
	writeDir(t, volume, c)
	requireLayout(t, volume, c, "lost+found")
}

func TestCFG5_ABadKeyIsNeverAPath(t *testing.T) {
	outer := t.TempDir()
	dir := filepath.Join(outer, "config")
	c := config(t, values{"../evil": "x", "../../evil": "x", "sub/evil": "x", "..data": "x", "good": "1"})
	writeDir(t, dir, c)
	requireLayout(t, dir, c)
	require.Equal(t, []string{"config"}, list(t, outer))
}

func TestWriteErrors(t *testing.T) {
	c := config(t, values{"a": "1"})
	_, err := configdir.Write(t.Context(), "", c)
	require.ErrorContains(t, err, "no directory given")
	_, err = configdir.Write(t.Context(), t.TempDir(), nil)
	require.ErrorContains(t, err, "no configuration given")
	file := write(t, filepath.Join(t.TempDir(), "file"), "x")
	_, err = configdir.Write(t.Context(), file, c)
	require.ErrorContains(t, err, file+": not a directory")
	_, err = configdir.Write(t.Context(), filepath.Join(file, "below"), c)
	require.ErrorContains(t, err, file)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	_, err = configdir.Write(ctx, dir, c)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, list(t, dir), "an abandoned run leaves nothing")
}

// crash is the value that step panics with, so that no cleanup code runs.
type crash struct{}

// crashAt runs a write that ends at its n-th change, like a killed process, and returns whether
// it got that far.
func crashAt(t *testing.T, n int, dir string, c *configresolve.Config) (crashed bool) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			require.Equal(t, crash{}, r)
			crashed = true
		}
	}()
	_, err := configdir.Stepped{Writer: configdir.Writer{Path: dir, Config: c}, Step: func(string) {
		if n--; n < 0 {
			panic(crash{})
		}
	}}.Write(t.Context())
	require.NoError(t, err)
	return false
}

// requireNoDangling checks that at no moment a link in dir dangles.
func requireNoDangling(t *testing.T, dir string) {
	t.Helper()
	for _, name := range list(t, dir) {
		if !strings.HasPrefix(name, "..") {
			_, err := os.Stat(filepath.Join(dir, name))
			require.NoError(t, err)
		}
	}
}

func TestCFG7_CrashAtEveryPoint(t *testing.T) {
	older := config(t, values{"stays": "1", "changes": "1", "goes": "1", "goes-too": "1"})
	newer := config(t, values{"stays": "1", "changes": "2", "comes": "1", "replaces": "1"})
	starts := map[string]func(dir string){
		"nothing":          func(string) {},
		"an older version": func(dir string) { writeDir(t, dir, older); write(t, filepath.Join(dir, "replaces"), "a file") },
		"a leftover of others": func(dir string) {
			writeDir(t, dir, older)
			write(t, filepath.Join(dir, "..data_17", "x"), "y")
		},
	}
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			for n := 0; ; n++ {
				dir := filepath.Join(t.TempDir(), "d")
				start(dir)
				if !crashAt(t, n, dir, newer) {
					require.Greater(t, n, 8)
					return
				}
				if _, err := os.Stat(dir); err == nil {
					requireNoDangling(t, dir)
				}
				for _, next := range []*configresolve.Config{newer, older} { // the same again, or a different one
					if crashAgain := filepath.Join(t.TempDir(), "copy"); n%3 == 0 {
						start(crashAgain)
						crashAt(t, n, crashAgain, newer)
						crashAt(t, n/2, crashAgain, next) // a second crash during recovery
						writeDir(t, crashAgain, next)
						requireOnly(t, crashAgain, next)
					}
				}
				writeDir(t, dir, newer)
				requireOnly(t, dir, newer)
				require.False(t, writeDir(t, dir, newer))
			}
		})
	}
}

// requireOnly is requireLayout, but tolerates a file of the test's own that is no key of c.
func requireOnly(t *testing.T, dir string, c *configresolve.Config) {
	t.Helper()
	if _, wanted := c.Lookup("replaces"); !wanted {
		os.Remove(filepath.Join(dir, "replaces"))
	}
	requireLayout(t, dir, c)
}

func TestReadersSeeOneVersionThroughTheDataLink(t *testing.T) {
	dir := t.TempDir()
	writeDir(t, dir, config(t, values{"a": "1", "b": "1"}))
	seen := func() string {
		a, errA := os.ReadFile(filepath.Join(dir, "..data", "a"))
		b, errB := os.ReadFile(filepath.Join(dir, "..data", "b"))
		require.NoError(t, errA)
		require.NoError(t, errB)
		return string(a) + string(b)
	}
	var steps []string
	w := configdir.Writer{Path: dir, Config: config(t, values{"a": "2", "b": "2"})}
	_, err := configdir.Stepped{Writer: w, Step: func(step string) {
		require.Contains(t, []string{"11", "22"}, seen(), step)
		steps = append(steps, strings.Fields(step)[0])
	}}.Write(t.Context())
	require.NoError(t, err)
	require.Equal(t, "make write write write write make rename remove remove remove remove remove leave", strings.Join(steps, " "),
		"every change can be tested by a kill before it")
	require.Equal(t, "22", seen())
}

type values = map[string]string

func config(t testing.TB, v values) *configresolve.Config {
	t.Helper()
	c, err := configresolve.Resolve(t.Context(), configresolve.Static("s", v))
	require.NoError(t, err)
	return c
}

func all(c *configresolve.Config) values { return maps.Collect(c.All()) }

func write(t *testing.T, path, content string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}
