// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/internal/testledger"
	"github.com/slipway-dev/slipway/internal/testns"
)

func TestWriteOnAFullFileSystem(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir := testns.TempDir(t)
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=128k"))
	older := config(t, values{"a": "1", "b": "1"})
	writeDir(t, dir, older)
	_, err := configdir.Write(t.Context(), dir, config(t, values{"a": "2", "big": strings.Repeat("x", 1<<20)}))
	require.ErrorIs(t, err, unix.ENOSPC)
	require.ErrorContains(t, err, dir)
	requireLayout(t, dir, older)
}

func TestWriteOnAReadOnlyMount(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir := testns.TempDir(t)
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, ""))
	c := config(t, values{"a": "1"})
	writeDir(t, dir, c)
	require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	require.False(t, writeDir(t, dir, c), "it holds what it should")
	_, err := configdir.Write(t.Context(), dir, config(t, values{"a": "2"}))
	require.ErrorIs(t, err, unix.EROFS)
	require.ErrorContains(t, err, dir)
	require.ErrorContains(t, err, "the mount is read-only: mount an emptyDir")
	requireLayout(t, dir, c)
}

// A destination may be a directory that others can write to: that is advice, and not an error.
// Of a pod's emptyDir it is not even said.
func TestSEC2_ADestinationOfOthersIsAdvice(t *testing.T) {
	testns.Enter(t, testns.Mount)
	for name, tc := range map[string]struct {
		spoil func(root string) error
		want  string
	}{
		"root's":      {spoil: func(string) error { return nil }},
		"everybody's": {func(root string) error { return os.Chmod(root, 0o777) }, "others than root may change it: it has mode 0777"},
		"a group's": {func(root string) error {
			return errors.Join(os.Chown(root, 0, 4242), os.Chmod(root, 0o775|os.ModeSetgid))
		}, "others than root may change it: it has mode 2775 and group 4242"},
		"a user's": {func(root string) error { return os.Chown(root, 4242, 4242) }, "others than root may change it: it belongs to uid 4242"},
		"a user's, below": {func(root string) error {
			return errors.Join(os.Mkdir(root+"/config", 0o755), os.Chown(root+"/config", 4242, 4242), os.Chmod(root, 0o777|os.ModeSticky))
		}, `"config": others than root may change it: it belongs to uid 4242`},
		"an emptyDir": {spoil: func(root string) error {
			volume := filepath.Join(filepath.Dir(root), "kubernetes.io~empty-dir", "config")
			return errors.Join(os.MkdirAll(volume, 0o755), os.Chmod(volume, 0o777), unix.Mount(volume, root, "", unix.MS_BIND, ""))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(testns.TempDir(t), "volume")
			require.NoError(t, errors.Join(os.Mkdir(root, 0o755), tc.spoil(root)))
			w := configdir.Writer{Path: filepath.Join(root, "config"), Config: config(t, values{"a": "1"})}
			writeDir(t, w.Path, w.Config)
			requireLayout(t, w.Path, w.Config)
			advice, err := w.Advise(t.Context())
			require.NoError(t, err)
			if tc.want == "" {
				require.Empty(t, advice)
				return
			}
			require.Len(t, advice, 1)
			require.Contains(t, advice[0], "users other than root may change the agent's configuration in "+w.Path+": ")
			require.Contains(t, advice[0], tc.want)
		})
	}
}

// What cannot be read is not known to differ.
func TestCFG7_AnErrorOfReadingIsSaid(t *testing.T) {
	testns.Enter(t, testns.Mount)
	w := configdir.Writer{Path: filepath.Join(testns.TempDir(t), "d"), Config: config(t, values{"a": ""})}
	writeDir(t, w.Path, w.Config)
	value := filepath.Join(w.Path, "..data", "a")
	require.NoError(t, unix.Mount("/proc/self/mem", value, "", unix.MS_BIND, "")) // a file whose first byte cannot be read
	_, err := ledger.Check(t.Context(), w)
	require.ErrorIs(t, err, unix.EIO)
	require.NoError(t, unix.Unmount(value, 0))

	require.NoError(t, os.Chmod(filepath.Dir(value), 0))
	require.NoError(t, unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &make([]unix.CapUserData, 2)[0]))
	_, err = ledger.Check(t.Context(), w)
	require.ErrorIs(t, err, unix.EACCES)
	require.NoError(t, os.Chmod(filepath.Join(w.Path, shown(w.Path)), 0o755))
}

// A plan that could not write the configuration knows before it changes anything.
func TestPLAN17_WhatMayNotBeWrittenIsKnown(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir := testns.TempDir(t)
	w := configdir.Writer{Path: filepath.Join(dir, "a/b"), Config: config(t, values{"a": "1"})}
	require.NoError(t, configdir.Kind().Permission(t.Context(), w.Path))
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_RDONLY, ""))
	first := &bootstraptest.Script{Changes: []string{"one"}}
	plan := bootstrap.Plan{Steps: []bootstrap.Step{{Name: "first", Action: first}, {Name: "config", After: []string{"first"}, Wants: w, Local: true}}}
	_, err := plan.Apply(t.Context())
	require.ErrorIs(t, err, unix.EROFS)
	require.ErrorContains(t, err, "the mount is read-only: mount an emptyDir")
	require.NotContains(t, first.Calls(), "apply")
}

func TestCFG7_ModesWhateverTheUmask(t *testing.T) {
	testns.Enter(t, testns.Mount) // a thread with its own umask
	for _, umask := range []int{0o077, 0o777, 0} {
		dir := filepath.Join(testns.TempDir(t), "d")
		c := config(t, values{"a": "1", "b": "2", "c": ""})
		old := unix.Umask(umask)
		writeDir(t, dir, c)
		unix.Umask(old)
		requireLayout(t, dir, c)
		for name, mode := range map[string]os.FileMode{"": 0o755, "..data": 0o755, "a": 0o644, "b": 0o644, "c": 0o644} {
			info, err := os.Stat(filepath.Join(dir, name))
			require.NoError(t, err)
			require.Equal(t, mode, info.Mode().Perm(), "%s under %o", name, umask)
		}
		require.False(t, writeDir(t, dir, c))
	}
}

func TestPLAN6_FilesFoundAfterARebootBelongToOthers(t *testing.T) {
	testns.Enter(t, testns.Mount)
	memory := testns.TempDir(t)
	require.NoError(t, unix.Mount("tmpfs", memory, "tmpfs", 0, ""))
	for _, start := range []func(t *testing.T, dir string){func(*testing.T, string) {}, earlier["of this package"]} {
		w := newRecorded(t, memory, values{"a": "1"})
		w.state = filepath.Join(testns.TempDir(t), "state")
		start(t, w.Path)
		require.NoError(t, w.Apply(t.Context()))
		require.NoError(t, os.RemoveAll(w.Path))
		writeDir(t, w.Path, w.Config) // the same configuration, in another run
		before := tree(t, w.Path)

		book, err := (&ledger.Ledger{Dir: w.state, Agent: w.agent, NoOwner: true, Boot: "the next", Kinds: []*ledger.Kind{configdir.Kind()}}).Open(t.Context())
		require.NoError(t, err)
		step := testledger.Step{Book: book}
		lines, err := step.CheckUndo(t.Context())
		require.NoError(t, err)
		require.Empty(t, lines)
		require.NoError(t, errors.Join(step.Undo(t.Context()), book.Close()))
		require.Equal(t, before, tree(t, w.Path))
		require.NoDirExists(t, w.state)
		require.NoError(t, os.RemoveAll(w.Path))
	}
}

// An attacker who can write to the directory puts his own file there and takes a lease on it
// (fcntl(2), F_SETLEASE): opening it would take 45 s, so it is refused without waiting.
func TestSEC7_ALeasedFileIsReplaced(t *testing.T) {
	w := configdir.Writer{Path: filepath.Join(t.TempDir(), "d"), Config: config(t, values{"a": "1"})}
	require.NoError(t, ledger.Apply(t.Context(), w))
	his, err := os.OpenFile(w.Path+"/..data/a", os.O_RDWR, 0)
	require.NoError(t, err)
	defer his.Close()
	_, err = unix.FcntlInt(his.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	require.NoError(t, err)
	changes, err := ledger.Check(t.Context(), w)
	require.NoError(t, err)
	require.Equal(t, []string{"write " + w.Path + "/a"}, changes)
	require.NoError(t, ledger.Apply(t.Context(), w))
	requireLayout(t, w.Path, w.Config)
}
