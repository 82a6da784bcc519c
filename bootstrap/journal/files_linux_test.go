// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/journaltest"
	"github.com/slipway-dev/slipway/internal/snapshot"
	"github.com/slipway-dev/slipway/internal/testns"
)

var acme = journal.Files{Kind: "acme"}

func write(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), mode))
	require.NoError(t, os.Chmod(path, mode))
}

// put changes path as an action would.
func put(t *testing.T, j *journal.Journal, path, content string) {
	t.Helper()
	ctx := step(t, j, "files")
	require.NoError(t, acme.Begin(ctx, j, path, journal.State{Type: "file"}))
	require.NoError(t, durable.WriteFile(path, 0o644, []byte(content)))
	require.NoError(t, acme.Complete(ctx, j, path))
}

func openFiles(t *testing.T, dir string) *journal.Journal {
	return open(t, dir, journal.Node{Handlers: []journal.Handler{acme}})
}

func TestPLAN6_UndoBringsBackEachKindOfFile(t *testing.T) {
	big := strings.Repeat("0123456789", 500) // over 4 KiB
	for name, prepare := range map[string]func(t *testing.T, path string){
		"absent":   func(*testing.T, string) {},
		"empty":    func(t *testing.T, path string) { write(t, path, "", 0o600) },
		"small":    func(t *testing.T, path string) { write(t, path, "small", 0o640) },
		"big":      func(t *testing.T, path string) { write(t, path, big, 0o755) },
		"link":     func(t *testing.T, path string) { require.NoError(t, os.Symlink("/etc/hostname", path)) },
		"dangling": func(t *testing.T, path string) { require.NoError(t, os.Symlink("nowhere", path)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
			path := filepath.Join(dir, "file")
			prepare(t, path)
			before := takeSnapshot(t, dir)
			for i := range 3 {
				put(t, openFiles(t, state), path, fmt.Sprint("ours ", i))
			}
			would, err := openFiles(t, state).CheckRevertAll(t.Context())
			require.NoError(t, err)
			require.Len(t, would, 1)
			require.NotEmpty(t, would[0].Change)
			_, err = openFiles(t, state).RevertAll(t.Context())
			require.NoError(t, err)
			require.Equal(t, before, takeSnapshot(t, dir))
			require.NoDirExists(t, state)
		})
	}
}

func takeSnapshot(t *testing.T, dir string) any {
	t.Helper()
	s := snapshot.Snapshot{}
	require.NoError(t, s.Files(dir))
	return s
}

func TestSEC3_NoSetUserIDBitComesFromAJournal(t *testing.T) {
	path, state := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "state")
	write(t, path, "was", 0o755|os.ModeSetuid|os.ModeSetgid)
	put(t, openFiles(t, state), path, "ours")
	_, err := openFiles(t, state).RevertAll(t.Context())
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), info.Mode())
}

func TestSEC3_NothingBelowSystemDirectories(t *testing.T) {
	for _, object := range []string{"/proc/sys/kernel/core_pattern", "/sys/x", "/dev/sda", "/", "relative", "/a/../etc/passwd"} {
		require.Error(t, acme.Owns(journal.Entry{Kind: "acme/file", Object: object}), object)
	}
	require.NoError(t, acme.Owns(journal.Entry{Kind: "acme/file", Object: "/etc/cni/net.d/05-acme.conflist"}))
	only := journal.Files{Kind: "acme", May: func(path string) error { return fmt.Errorf("not %s", path) }}
	require.ErrorContains(t, only.Owns(journal.Entry{Kind: "acme/file", Object: "/etc/passwd"}), "not /etc/passwd")
}

func TestPLAN6_ChangedFilesStay(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	for name, change := range map[string]func(path string) error{
		"content": func(path string) error { return os.WriteFile(path, []byte("theirs"), 0o644) },
		"mode":    func(path string) error { return os.Chmod(path, 0o600) },
		"link":    func(path string) error { os.Remove(path); return os.Symlink("x", path) },
		"folder":  func(path string) error { os.Remove(path); return os.Mkdir(path, 0o755) },
		"fifo":    func(path string) error { os.Remove(path); return unix.Mkfifo(path, 0o600) },
	} {
		path := filepath.Join(dir, name)
		put(t, openFiles(t, state), path, "ours")
		require.NoError(t, change(path))
		before := takeSnapshot(t, dir)
		for range 2 { // it stays recorded
			_, err := openFiles(t, state).RevertAll(t.Context())
			require.ErrorIs(t, err, journal.ErrChanged, name)
			require.ErrorContains(t, err, path)
			require.Equal(t, before, takeSnapshot(t, dir), name)
		}
		require.NoError(t, os.Remove(path))
		_, err := openFiles(t, state).RevertAll(t.Context())
		require.NoError(t, err, "it is as it was before")
		require.NoDirExists(t, state)
	}
}

func TestPLAN6_DirectoriesGoIfTheyAreEmpty(t *testing.T) {
	root, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	j := openFiles(t, state)
	ctx := step(t, j, "files")
	require.NoError(t, acme.MkdirAll(ctx, j, filepath.Join(root, "a/b/c"), 0o755))
	put(t, j, filepath.Join(root, "a/b/ours"), "x")
	write(t, filepath.Join(root, "a/theirs"), "x", 0o644)

	would, err := j.CheckRevert(ctx)
	require.ErrorContains(t, err, "directory "+root+"/a is kept: it holds theirs")
	require.Equal(t, []string{"remove file " + root + "/a/b/ours", "remove directory " + root + "/a/b/c", "remove directory " + root + "/a/b"}, would)
	err = j.Revert(ctx)
	require.ErrorContains(t, err, "directory "+root+"/a is kept: it holds theirs")
	require.Equal(t, []string{root + "/a"}, objects(t, j))
	require.NoDirExists(t, root+"/a/b")

	require.NoError(t, os.Remove(filepath.Join(root, "a/theirs")))
	require.NoError(t, j.Revert(ctx))
	require.NoDirExists(t, root+"/a")
	require.NoDirExists(t, state)
}

// The present file may have any size.
func TestSEC6_WhatIsNotOursByItsSizeIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	j := openFiles(t, filepath.Join(t.TempDir(), "state"))
	put(t, j, path, "ours")
	require.NoError(t, os.Truncate(path, 1<<40))
	ctx := step(t, j, "files")
	_, err := j.CheckRevert(ctx)
	require.EqualError(t, err, path+" is no longer as it was left, so it is kept")
	require.EqualError(t, j.Revert(ctx), path+" is no longer as it was left, so it is kept")
}

// An object that took the place of what was being written is not ours, whether it is of the same
// type or of another.
func TestPLAN6_WhatTookThePlaceMeanwhileIsNotTakenForOurs(t *testing.T) {
	for _, theirs := range []func(path string) error{
		func(path string) error { return os.Symlink("theirs", path) },
		func(path string) error { return os.WriteFile(path, []byte("theirs"), 0o600) },
	} {
		for _, after := range []journal.State{{}, {Type: "symlink", Target: "ours"}, journal.FileState([]byte("ours"), 0o600)} {
			path := filepath.Join(t.TempDir(), "link")
			write(t, path, "before", 0o644)
			j := openFiles(t, filepath.Join(t.TempDir(), "state"))
			ctx := step(t, j, "files")
			require.NoError(t, acme.Begin(ctx, j, path, after))
			require.NoError(t, os.Remove(path))
			require.NoError(t, theirs(path))
			require.NoError(t, acme.Complete(ctx, j, path))
			require.ErrorIs(t, j.Revert(ctx), journal.ErrChanged)
			content, err := os.ReadFile(path)
			require.NotEqual(t, "before", string(content), err)
		}
	}
}

// Killed after writing, and killed again before the next write.
func TestPLAN6_KilledTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	j := openFiles(t, filepath.Join(t.TempDir(), "state"))
	ctx := step(t, j, "files")
	for _, content := range []string{"original", "ours"} {
		write(t, path, content, 0o644)
		require.NoError(t, acme.Begin(ctx, j, path, journal.FileState([]byte(map[string]string{"original": "ours", "ours": "another"}[content]), 0o644)))
	}
	require.NoError(t, j.Revert(ctx))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "original", string(content))
}

// A run that failed half-way has begun an entry. If an administrator then restores the file,
// the uninstall restores the administrator's version.
func TestPLAN6_WhatCameAfterAFailureIsWhatWasBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	j := openFiles(t, filepath.Join(t.TempDir(), "state"))
	ctx, after := step(t, j, "files"), journal.FileState([]byte("ours"), 0o600)
	write(t, path, "in the way", 0o600)
	require.NoError(t, acme.Begin(ctx, j, path, after))
	write(t, path, "an administrator's", 0o600)
	require.NoError(t, acme.Begin(ctx, j, path, after))
	write(t, path, "ours", 0o600)
	require.NoError(t, acme.Complete(ctx, j, path))
	require.NoError(t, j.Revert(ctx))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "an administrator's", string(content))
}

func TestSEC2_AJournalThatOthersMayWriteIsRefused(t *testing.T) {
	testns.Root(t)
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"directory of another":    func(t *testing.T, dir string) { require.NoError(t, os.Chown(dir, 1000, 0)) },
		"directory for everybody": func(t *testing.T, dir string) { require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky)) },
		"directory of another group": func(t *testing.T, dir string) {
			require.NoError(t, os.Chown(dir, 0, 1000))
			require.NoError(t, os.Chmod(dir, 0o770))
		},
		"file of another":    func(t *testing.T, dir string) { require.NoError(t, os.Chown(dir+"/agent.journal", 1000, 0)) },
		"file for everybody": func(t *testing.T, dir string) { require.NoError(t, os.Chmod(dir+"/agent.journal", 0o666)) },
		"file of two names":  func(t *testing.T, dir string) { require.NoError(t, os.Link(dir+"/agent.journal", dir+"/other")) },
		"link": func(t *testing.T, dir string) {
			require.NoError(t, os.Rename(dir+"/agent.journal", dir+"/real"))
			require.NoError(t, os.Symlink("real", dir+"/agent.journal"))
		},
		"pipe": func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(dir+"/agent.journal"))
			require.NoError(t, unix.Mkfifo(dir+"/agent.journal", 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, v := filepath.Join(t.TempDir(), "state"), newValues()
			j := open(t, dir, journal.Node{})
			v.set(t, step(t, j, "s"), j, "a", "1")
			spoil(t, dir)
			start := time.Now()
			_, err := (&journal.Node{Dir: dir, Agent: "agent", NoOwner: true}).Open(context.Background(), nil)
			require.ErrorIs(t, err, journal.ErrUntrusted)
			require.Equal(t, "ledger.untrusted", code.Of(err))
			require.ErrorContains(t, err, dir)
			require.Less(t, time.Since(start), 10*time.Second, "it does not wait for a writer to the pipe")
		})
	}
}

func TestSEC1_AStateDirectoryThatIsALinkIsRefused(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(dir+"/real", 0o700))
	require.NoError(t, os.Symlink("real", dir+"/state"))
	_, err := (&journal.Node{Dir: dir + "/state", Agent: "agent", NoOwner: true}).Open(context.Background(), nil)
	require.ErrorContains(t, err, "not a directory")
}

func TestSEC2_KeptContentOfOthersIsRefused(t *testing.T) {
	testns.Root(t)
	for name, spoil := range map[string]func(t *testing.T, blob string){
		"of another":    func(t *testing.T, blob string) { require.NoError(t, os.Chown(blob, 1000, 0)) },
		"for everybody": func(t *testing.T, blob string) { require.NoError(t, os.Chmod(blob, 0o666)) },
		"damaged":       func(t *testing.T, blob string) { write(t, blob, "other", 0o600) },
		"of another group": func(t *testing.T, blob string) {
			require.NoError(t, errors.Join(os.Chown(blob, 0, 1000), os.Chmod(blob, 0o660)))
		},
		"of two names": func(t *testing.T, blob string) { require.NoError(t, os.Link(blob, blob+".other")) },
		"link": func(t *testing.T, blob string) {
			require.NoError(t, errors.Join(os.Rename(blob, filepath.Dir(blob)+"/real"), os.Symlink("real", blob)))
		},
		"pipe": func(t *testing.T, blob string) {
			require.NoError(t, errors.Join(os.Remove(blob), unix.Mkfifo(blob, 0o600)))
		},
		"directory": func(t *testing.T, blob string) {
			require.NoError(t, errors.Join(os.Remove(blob), os.Mkdir(blob, 0o700)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path, state := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "state")
			write(t, path, strings.Repeat("was", 5000), 0o644)
			put(t, openFiles(t, state), path, "ours")
			blobs, err := filepath.Glob(state + "/blob.*")
			require.NoError(t, err)
			require.Len(t, blobs, 1)
			spoil(t, blobs[0])
			_, err = openFiles(t, state).RevertAll(t.Context())
			require.ErrorContains(t, err, "kept content")
			require.ErrorContains(t, err, strings.TrimPrefix(filepath.Base(blobs[0]), "blob."))
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, "ours", string(content), "the present file stays")
			require.Len(t, journaltest.Entries(t, openFiles(t, state)), 1, "and recorded")
		})
	}
}

// Content is read from beside the journal, whatever path the journal names.
func TestSEC3_NamesOfContentAreBare(t *testing.T) {
	dir := t.TempDir()
	path, state := filepath.Join(dir, "file"), filepath.Join(dir, "state")
	write(t, path, strings.Repeat("was", 5000), 0o644)
	write(t, filepath.Join(dir, "secret"), "secret", 0o600)
	sum := sha256.Sum256([]byte("secret"))
	for _, blob := range []string{"../secret", filepath.Join(dir, "secret"), ".", "..", "blob./../../secret", "agent.journal"} {
		put(t, openFiles(t, state), path, "ours")
		journaltest.Edit(t, state, func(e *journal.Entry) {
			e.Before.Blob, e.Before.SHA256, e.Before.Mode = blob, hex.EncodeToString(sum[:]), 0o644
		})
		_, err := (&journal.Node{Dir: state, Agent: "agent", NoOwner: true, Handlers: []journal.Handler{acme}}).Open(context.Background(), nil)
		require.ErrorIs(t, err, journal.ErrUnreadable, blob)
		require.ErrorContains(t, err, "is not a file beside the journal")
		require.NoError(t, os.RemoveAll(state))
	}
}

func TestSEC6_HashingEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "huge")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, 1<<30))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := journal.Snapshot(ctx, path)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, os.Truncate(path, 200<<30))
	_, err = journal.Snapshot(t.Context(), path)
	require.ErrorContains(t, err, "too much to keep")
}

// A killed writer's temporary file is removed together with the entry it was for, also in a
// directory of others; the temporary file of a writer that is still running stays.
func TestPLAN6_WhatAKilledWriterLeftGoesToo(t *testing.T) {
	root, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	j := openFiles(t, state)
	ctx := step(t, j, "files")
	made := filepath.Join(root, "made")
	require.NoError(t, acme.MkdirAll(ctx, j, made, 0o755))
	leave := func(dir string) { write(t, filepath.Join(dir, ".slipway-ABCDEFGHIJKLMNOP.tmp"), "half", 0o600) }
	for _, dir := range []string{root, made} {
		require.NoError(t, acme.Begin(ctx, j, filepath.Join(dir, "file"), journal.State{Type: "file"}))
		require.NoError(t, acme.Begin(ctx, j, filepath.Join(dir, "another"), journal.State{Type: "file"}))
		leave(dir)
	}
	living, err := durable.Create(filepath.Join(root, "theirs"), 0o600)
	require.NoError(t, err)
	would, err := j.CheckRevert(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{
		"remove what a killed run has left in " + made, "remove what a killed run has left in " + root, "remove directory " + made,
	}, would)
	require.NoError(t, j.Revert(ctx))
	require.FileExists(t, living.Name())
	living.Abort()
	left, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Empty(t, left)

	require.NoError(t, acme.MkdirAll(ctx, j, made, 0o755))
	leave(made)
	require.NoError(t, j.Revert(ctx), "there is no unfinished file")
	require.NoDirExists(t, made)
}

func TestPLAN12_OnePathByTwoNames(t *testing.T) {
	root, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.Mkdir(root+"/run", 0o755))
	require.NoError(t, os.Symlink("run", root+"/var-run"))
	j := openFiles(t, state)
	require.NoError(t, acme.MkdirAll(step(t, j, "one"), j, root+"/var-run/agent", 0o755))
	require.NoError(t, acme.MkdirAll(step(t, j, "two"), j, root+"/run/agent/a", 0o755))
	require.NoError(t, acme.MkdirAll(step(t, j, "two"), j, root+"/run/other", 0o755))
	require.NoError(t, acme.MkdirAll(step(t, j, "one"), j, root+"/var-run/other/b", 0o755))
	_, err := j.RevertAll(t.Context())
	require.NoError(t, err)
	require.NoDirExists(t, root+"/run/agent")
	require.NoDirExists(t, root+"/run/other")
}

// An action makes no object that its undo would refuse.
func TestPLAN19_NothingIsMadeWhereItCouldNotBeUndone(t *testing.T) {
	dir := t.TempDir()
	j, own := openFiles(t, filepath.Join(dir, "state")), filepath.Join(dir, "run", "acme")
	files := journal.Files{Kind: "acme", May: func(path string) error {
		if path != own {
			return errors.New("not acme's")
		}
		return nil
	}}
	require.ErrorContains(t, files.MkdirAll(t.Context(), j, own, 0o755), "make directory "+dir+"/run: not acme's")
	require.ErrorContains(t, files.Write(t.Context(), j, filepath.Join(dir, "file"), journal.File{Mode: 0o644}), "write "+dir+"/file: not acme's")
	require.NoDirExists(t, filepath.Join(dir, "run"))
	require.NoFileExists(t, filepath.Join(dir, "file"))

	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, journal.Files{Kind: "acme"}.MkdirAll(ended, j, own, 0o755), context.Canceled)
	require.NoDirExists(t, filepath.Join(dir, "run"))
}

// keptFile is a node with two of our files, one of them edited, the edited one below a
// directory of ours.
type keptFile struct{ root, state, edited, other string }

func newKeptFile(t *testing.T) keptFile {
	t.Helper()
	root := t.TempDir()
	n := keptFile{root, filepath.Join(t.TempDir(), "state"), filepath.Join(root, "dir", "edited"), filepath.Join(root, "other")}
	j := n.open(t, journal.Node{})
	require.NoError(t, acme.MkdirAll(step(t, j, "files"), j, filepath.Dir(n.edited), 0o755))
	put(t, j, n.edited, "ours")
	put(t, j, n.other, "ours")
	write(t, n.edited, "edited", 0o644)
	return n
}

func (n keptFile) open(t *testing.T, o journal.Node) *journal.Journal {
	t.Helper()
	o.Handlers = []journal.Handler{acme}
	return open(t, n.state, o)
}

func (n keptFile) undo(t *testing.T, o journal.Node) ([]journal.Undone, error) {
	t.Helper()
	return n.open(t, o).RevertAll(t.Context())
}

// A kept file that is changed again has the edited version as its original, which is restored.
func TestPLAN6_WhatIsKeptIsTheOriginalOfTheNextChange(t *testing.T) {
	n := newKeptFile(t)
	_, err := n.undo(t, journal.Node{})
	require.ErrorIs(t, err, journal.ErrChanged)
	j := n.open(t, journal.Node{})
	mine, err := j.Recorded(step(t, j, "files"))
	require.NoError(t, err)
	require.Len(t, mine, 1, "the directory")
	put(t, j, n.edited, "ours again")
	_, err = n.undo(t, journal.Node{})
	require.EqualError(t, err, "directory "+filepath.Dir(n.edited)+" is kept: it holds edited (once that is gone, undoing removes the directory)")
	content, err := os.ReadFile(n.edited)
	require.NoError(t, err)
	require.Equal(t, "edited", string(content))
}
