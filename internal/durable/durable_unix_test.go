// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package durable_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/durable"
)

const holdEnv = "DURABLE_TEST_HOLD"

// TestMain serves as a writer that stops halfway, until it is killed.
func TestMain(m *testing.M) {
	if path := os.Getenv(holdEnv); path != "" {
		if err := durable.In(path, func(d *durable.Dir, name string) error {
			_, err := d.Create(name, 0o600)
			fmt.Println("holding")
			io.Copy(io.Discard, os.Stdin)
			return err
		}); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

func TestModeHoldsWhateverTheUmask(t *testing.T) {
	modes := []os.FileMode{0o600, 0o644, 0o755, 0o777}
	if os.Geteuid() == 0 { // the kernel clears the bit when another user writes
		modes = append(modes, 0o755|os.ModeSetuid)
	}
	for _, mode := range modes {
		path := filepath.Join(t.TempDir(), "file")
		require.NoError(t, durable.WriteFile(path, mode, []byte("x")))
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode())
		mode := mode.Perm() | 0o100 // for its owner to open it
		made, err := open(t, t.TempDir()).OpenNewDir("dir", mode)
		require.NoError(t, err)
		info, err = made.Stat()
		require.NoError(t, errors.Join(err, made.Close()))
		require.Equal(t, os.ModeDir|mode, info.Mode())
	}
}

func TestSweepTakesOnlyWhatTheDeadLeft(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdEnv+"="+filepath.Join(dir, "file"))
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = io.ReadFull(stdout, make([]byte, len("holding\n")))
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(filepath.Join(dir, ".slipway-notours"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "user.tmp"), nil, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".slipway-directory.tmp"), 0o700))
	require.NoError(t, os.Symlink("dangling", filepath.Join(dir, ".slipway-DEAD.lnk")))
	require.NoError(t, open(t, dir).Sweep())
	require.Len(t, names(t, dir), 4, "the writer lives, so its file stays; the dead link goes")

	require.NoError(t, cmd.Process.Kill())
	cmd.Wait()
	require.NoError(t, open(t, dir).Sweep())
	require.Equal(t, []string{".slipway-directory.tmp", ".slipway-notours", "user.tmp"}, names(t, dir))
}

// Writers and sweepers at once: no write fails, nothing is left over.
func TestSweepBesideWriters(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	var wg sync.WaitGroup
	errs := make(chan error, 1000)
	for w := range 4 {
		wg.Go(func() {
			for i := range 50 {
				errs <- d.WriteFile(fmt.Sprint("file", w), 0o600, []byte(strings.Repeat("x", i)))
				errs <- d.Symlink("file", fmt.Sprint("link", w))
				errs <- d.Sweep()
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.NoError(t, open(t, dir).Sweep())
	require.Len(t, names(t, dir), 8)
}

// A program that is just starting inherits the writing handle for a moment.
func TestASealedProgramRunsAtOnce(t *testing.T) {
	dir := t.TempDir()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					exec.Command("/bin/true").Run()
				}
			}
		})
	}
	defer wg.Wait()
	defer close(stop)
	for i := range 200 {
		name := fmt.Sprint("program", i)
		f, err := open(t, dir).Create(name, 0o755)
		require.NoError(t, err)
		_, err = f.WriteString("#!/bin/sh\nexit 0\n")
		require.NoError(t, err)
		require.NoError(t, f.Seal())
		require.NoError(t, exec.Command(f.Name()).Run(), "before the rename")
		require.NoError(t, f.Commit())
		require.NoError(t, exec.Command(filepath.Join(dir, name)).Run())
	}
}

func TestAFileAndADirectoryAreMadeOnce(t *testing.T) {
	d := open(t, t.TempDir())
	f, err := d.OpenNew("file", 0o604)
	require.NoError(t, err)
	_, err = f.WriteString("x")
	require.NoError(t, errors.Join(err, f.Close()))
	below, err := d.OpenNewDir("dir", 0o705|fs.ModeSticky)
	require.NoError(t, err)
	defer below.Close()
	require.NoError(t, below.Unsynced().SymlinkNew("nowhere", "link"))
	require.NoError(t, below.Unsynced().Remove("link"))
	require.NoError(t, d.Unsynced().SymlinkNew("file", "link"))
	require.NoError(t, d.Unsynced().Sync())

	for name, mode := range map[string]fs.FileMode{
		"file": 0o604, "dir": fs.ModeDir | 0o705 | fs.ModeSticky, "link": fs.ModeSymlink | 0o777,
	} {
		info, err := d.Lstat(name)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode(), name)
		_, errFile := d.OpenNew(name, 0o600)
		_, errDir := d.OpenNewDir(name, 0o700)
		for _, err := range []error{errFile, errDir, d.SymlinkNew("elsewhere", name)} {
			require.ErrorIs(t, err, fs.ErrExist)
		}
	}
	content, err := d.ReadFile("file", 1)
	require.NoError(t, err)
	require.Equal(t, "x", string(content))
	for _, name := range []string{"", ".", "..", "dir/x"} {
		_, errFile := d.OpenNew(name, 0o600)
		_, errDir := d.OpenNewDir(name, 0o700)
		for _, err := range []error{errFile, errDir, d.SymlinkNew("elsewhere", name)} {
			require.ErrorIs(t, err, fs.ErrInvalid)
		}
	}
}

func TestTryLockKeepsOthersOut(t *testing.T) {
	dir := t.TempDir()
	first, second := open(t, dir), open(t, dir)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "lock"), 0o700), "left by a killed process")
	for range 2 {
		unlock, err := first.TryLock("lock")
		require.NoError(t, err)
		require.NotNil(t, unlock)
		other, err := second.TryLock("lock")
		require.NoError(t, err)
		require.Nil(t, other)
		require.NoError(t, unlock())
		require.Empty(t, names(t, dir))
	}
	first, second = second, first
	unlock, err := first.TryLock("lock")
	require.NoError(t, err)
	require.NotNil(t, unlock)
	require.NoError(t, unlock())
}

// Others could hold a lock file that they can open forever.
func TestSEC7_ALockOfOthersIsNotTaken(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	for name, put := range map[string]func(path string) error{
		"readable": func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o755)) },
		"file":     func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"link":     func(path string) error { return os.Symlink(".", path) },
	} {
		require.NoError(t, put(filepath.Join(dir, name)))
		unlock, err := d.TryLock(name)
		require.ErrorContains(t, err, filepath.Join(dir, name))
		require.Nil(t, unlock)
	}
}

// A FIFO that appears between the check and the open is not waited for.
func TestOpenDoesNotWaitForAFIFO(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	file, fifo, place := filepath.Join(dir, "file"), filepath.Join(dir, "fifo"), filepath.Join(dir, "place")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	require.NoError(t, os.Link(file, place))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				temp := filepath.Join(dir, "temp")
				os.Link([]string{file, fifo}[i%2], temp)
				os.Rename(temp, place)
			}
		}
	})
	defer wg.Wait()
	defer close(stop)
	for range 5000 {
		f, err := d.Open("place")
		if err != nil {
			continue
		}
		info, err := f.Stat()
		require.NoError(t, errors.Join(err, f.Close()))
		require.True(t, info.Mode().IsRegular())
	}
}
