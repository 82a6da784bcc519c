// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package flock_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/flock"
	"github.com/slipway-dev/slipway/internal/testns"
)

func read(t *testing.T, path string) (h flock.Holder) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, &h))
	return h
}

func TestPLAN2_LockMakesTheFileAndUnlockLeavesIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := flock.File{Path: path, Owner: "me"}.Lock(t.Context())
	require.NoError(t, err)
	before, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), before.Mode())
	h := read(t, path)
	hostname, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, hostname, h.Hostname)
	require.Equal(t, os.Getpid(), h.PID)
	require.Equal(t, "me", h.Owner)
	require.WithinDuration(t, time.Now(), h.Start, time.Minute)

	require.NoError(t, unlock())
	after, err := os.Lstat(path)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after))
	require.Zero(t, after.Size(), "it names no holder")
	require.NoError(t, unlock(), "again")
}

func TestSEC7_AFileThatOthersCanHoldIsRefused(t *testing.T) {
	testns.Root(t)
	path := filepath.Join(t.TempDir(), "lock")
	for want, spoil := range map[string]func() error{
		"it has mode 0644, so other users could hold it for ever (chmod 600 it)": func() error { return os.Chmod(path, 0o644) },
		"it has mode 0622":       func() error { return os.Chmod(path, 0o622) },
		"it belongs to uid 1000": func() error { return os.Chown(path, 1000, 0) },
		"hard links":             func() error { return os.Link(path, path+".too") },
	} {
		require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
		require.NoError(t, spoil())
		theirs, err := os.Open(path) // as others may
		require.NoError(t, err)
		require.NoError(t, unix.Flock(int(theirs.Fd()), unix.LOCK_EX))
		_, err = flock.File{Path: path}.Lock(t.Context()) // does not wait for their shared lock
		require.ErrorContains(t, err, want)
		require.Equal(t, "host.untrusted", code.Of(err))
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "precious", string(content))
		require.NoError(t, theirs.Close())
		require.NoError(t, os.Remove(path))
	}
}

func TestProgramsDoNotInheritTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := flock.File{Path: path}.Lock(t.Context())
	require.NoError(t, err)
	out, err := exec.Command("sh", "-c", "ls -l /proc/$$/fd").Output()
	require.NoError(t, err)
	require.NotContains(t, string(out), filepath.Dir(path))
	require.NoError(t, unlock())
}

func TestPLAN2_TimeoutNamesTheHolder(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		timeout, want time.Duration
	}{{0, 60 * time.Second}, {3*time.Second + time.Millisecond, 3*time.Second + time.Millisecond}, {-1, 0}} {
		synctest.Test(t, func(t *testing.T) {
			file := flock.File{Path: filepath.Join(dir, "lock"), Owner: "first"}
			unlock, err := file.Lock(t.Context())
			require.NoError(t, err)
			holder := read(t, file.Path)

			start := time.Now()
			file.Timeout, file.Owner = c.timeout, "second"
			_, err = file.Lock(t.Context())
			held := new(flock.HeldError)
			require.ErrorAs(t, err, &held)
			require.Equal(t, "lock.held", code.Of(err))
			require.ErrorContains(t, err, "lock "+file.Path+": still held after "+c.want.String()+` by pid `)
			require.ErrorContains(t, err, ` (owner "first", since `+holder.Start.Format(time.RFC3339)+")")
			require.Equal(t, c.want, time.Since(start))
			require.Equal(t, flock.HeldError{Path: file.Path, Waited: c.want, Holder: holder}, *held)
			require.Equal(t, holder, read(t, file.Path), "the waiter wrote nothing")
			require.NoError(t, unlock())
		})
	}
}

func TestCancellationEndsTheWait(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		file := flock.File{Path: filepath.Join(dir, "lock")}
		unlock, err := file.Lock(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err = file.Lock(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		held := new(flock.HeldError)
		require.ErrorAs(t, err, &held)
		require.Equal(t, 2*time.Second, held.Waited)
		require.Equal(t, os.Getpid(), held.Holder.PID)
		require.NoError(t, unlock())

		file.Path += "2"
		_, err = file.Lock(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoFileExists(t, file.Path, "an ended context opens nothing")
	})
}

func TestLockRefuses(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(target, link))
	require.NoError(t, os.Symlink(target, filepath.Join(dir, "dangling")))
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for path, want := range map[string]string{
		"lock":                         `lock "lock": not an absolute path`,
		link:                           "lock " + link + ": open " + link + ": not a regular file",
		fifo:                           "lock " + fifo + ": open " + fifo + ": not a regular file",
		dir:                            "lock " + dir + ": open " + dir + ": not a regular file",
		filepath.Join(file, "lock"):    "lock " + file + "/lock: open directory " + file + ": not a directory",
		filepath.Join(dir, "a/b/lock"): "lock " + dir + "/a/b/lock: open directory " + dir + "/a/b: no such file or directory (create it, or name another)",
	} {
		_, err := flock.File{Path: path}.Lock(t.Context())
		require.ErrorContains(t, err, want)
	}
	require.NoFileExists(t, target)
}

func TestFileRemovedByAStranger(t *testing.T) {
	file := flock.File{Path: filepath.Join(t.TempDir(), "lock"), Timeout: -1}
	first, err := file.Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.Remove(file.Path))
	second, err := file.Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, first(), "leaves the second's file in place")
	require.FileExists(t, file.Path)
	_, err = file.Lock(t.Context())
	require.ErrorAs(t, err, new(*flock.HeldError))
	require.NoError(t, second())
}

// heldWith returns the error of Lock for a held lock whose file has the content.
func heldWith(t testing.TB, path, content string) error {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	_, err = flock.File{Path: path, Timeout: -1}.Lock(t.Context())
	require.ErrorAs(t, err, new(*flock.HeldError))
	return err
}

func FuzzHolder(f *testing.F) {
	for _, s := range []string{"", "{", "null", "[]", `{"pid":1}`, `{"hostname":"a\nb","owner":"\u001b[2J","pid":1,"start":"2026-01-02T15:04:05Z"}`, strings.Repeat(" ", 5000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, content string) {
		text := heldWith(t, filepath.Join(t.TempDir(), "lock"), content).Error()
		require.NotContains(t, text, "\n")
		require.NotContains(t, text, "\x1b")
	})
}
