// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package durable changes files so that a crash at any point leaves either
// the old state or the new one, and so that the new one survives a power loss
// once the call has returned.
//
// A file is written under a temporary name in its own directory (a watcher of
// a configuration directory sees a rename within it, where many miss a rename
// from elsewhere), synced, renamed over the target, and the directory synced.
// The writer holds a lock on the temporary file, so that [Sweep] can tell a
// dead writer's leftover from a live writer's work.
//
// Durability is what the file system offers: an fsync that it refuses with
// EINVAL (some network file systems, on directories) is not an error. Outside
// Unix there are no locks and no directory syncs, and Sweep removes nothing.
package durable

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Temporary names start with a dot and end in no suffix that a CNI runtime,
// systemd-sysctl or run-parts would read.
const (
	tempPrefix = ".slipway-"
	fileSuffix = ".tmp"
	linkSuffix = ".lnk"
)

// StateDirMode is the mode of a state directory that slipway itself has made,
// and so may remove when nothing is left in it. The sticky bit says so: it means
// nothing where only the owner may write, it is there from the directory's first
// moment, and one that an administrator has made has none, and stays.
const StateDirMode = 0o700 | fs.ModeSticky

func tempName(dir, suffix string) string {
	return filepath.Join(dir, tempPrefix+rand.Text()[:16]+suffix)
}

// File is a file on its way to its place. It is written through the embedded
// *os.File, then comes Commit; Abort, which may be deferred, drops it if it
// was not committed.
type File struct {
	*os.File // for writing, until Seal or Commit
	path     string
	temp     string
	lock     *os.File // open for reading only: says that the writer lives
	done     bool
}

// Create opens a temporary file beside path, with mode (permission, setuid,
// setgid and sticky bits) in force from the start of its life under path.
func Create(path string, mode fs.FileMode) (*File, error) {
	for range 100 {
		f, err := tryCreate(path, mode)
		if err != nil {
			return nil, fmt.Errorf("create a temporary file for %s: %w", path, err)
		}
		if f != nil {
			return f, nil
		}
	}
	return nil, fmt.Errorf("create a temporary file for %s: every name is taken", path)
}

// tryCreate returns nil if the name is taken, or a sweeper was faster.
func tryCreate(path string, mode fs.FileMode) (*File, error) {
	temp := tempName(filepath.Dir(path), fileSuffix)
	w, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f := &File{File: w, path: path, temp: temp}
	locked := false
	if f.lock, locked, err = lockTemp(w); err == nil && locked {
		if err = w.Chmod(mode); err == nil {
			return f, nil
		}
	}
	f.Abort()
	return nil, err
}

// Seal makes the content durable and closes the file for writing, also in
// programs that are just being started, so that a program in it can be run
// before and from the moment it is in its place. Nothing can be written after
// it. Name still is the temporary file's.
func (f *File) Seal() error {
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", f.temp, err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close %s: %w", f.temp, err)
	}
	awaitNoWriter(f.lock)
	return nil
}

// Name returns the path of the temporary file.
func (f *File) Name() string { return f.temp }

// CommitAs is [File.Commit] with another name in the same directory, for a
// name that depends on the content.
func (f *File) CommitAs(path string) error {
	f.path = path
	return f.Commit()
}

// Commit seals the file, unless that was done, and puts it in its place: over
// a file or a symbolic link that is there, which is replaced and not followed.
func (f *File) Commit() error {
	defer f.Abort()
	if err := f.Seal(); err != nil && !errors.Is(err, fs.ErrClosed) {
		return err
	}
	if err := os.Rename(f.temp, f.path); err != nil {
		return fmt.Errorf("put %s in place: %w", f.path, err)
	}
	f.done = true
	f.lock.Close()
	return SyncDir(filepath.Dir(f.path))
}

// Abort drops the file, unless it was committed or aborted before.
func (f *File) Abort() {
	if f.done {
		return
	}
	f.done = true
	f.Close() // an error if it is sealed
	os.Remove(f.temp)
	f.lock.Close() // last: without it a sweeper may come
}

// WriteFile writes content to path with mode.
func WriteFile(path string, mode fs.FileMode, content []byte) error {
	_, err := Copy(path, mode, bytes.NewReader(content))
	return err
}

// Copy writes what r gives to path with mode and returns its SHA-256 in hex.
func Copy(path string, mode fs.FileMode, r io.Reader) (string, error) {
	f, err := Create(path, mode)
	if err != nil {
		return "", err
	}
	defer f.Abort()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(f.File, sum), r); err != nil {
		return "", fmt.Errorf("write %s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), f.Commit()
}

// MkdirAll makes path and the directories above it that are missing, durably,
// each with mode whatever the umask.
func MkdirAll(path string, mode fs.FileMode) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(path)
	if parent != path {
		if err := MkdirAll(parent, mode); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, mode); err != nil {
		if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
			return nil // somebody was faster
		}
		return err
	}
	if err := os.Chmod(path, mode); err != nil { // the umask may have taken bits away
		return err
	}
	return SyncDir(parent)
}

// Symlink makes path a symbolic link to target, replacing a file or link.
func Symlink(target, path string) error {
	dir := filepath.Dir(path)
	unlock, err := lockLinks(dir)
	if err != nil {
		return fmt.Errorf("lock %s: %w", dir, err)
	}
	defer unlock()
	temp := tempName(dir, linkSuffix)
	if err := os.Symlink(target, temp); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		os.Remove(temp)
		return fmt.Errorf("put %s in place: %w", path, err)
	}
	return SyncDir(dir)
}

// Remove removes the file, link or empty directory at path. One that is
// already gone is no error.
func Remove(path string) error {
	if err := os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Sweep removes from dir what writers that were killed have left there, and
// nothing of a writer that lives. A missing dir holds nothing.
func Sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasPrefix(name, tempPrefix) {
			continue
		}
		path := filepath.Join(dir, name)
		switch {
		case strings.HasSuffix(name, fileSuffix) && entry.Type().IsRegular():
			errs = append(errs, sweepFile(path))
		case strings.HasSuffix(name, linkSuffix) && entry.Type() == fs.ModeSymlink:
			errs = append(errs, sweepLink(path))
		}
	}
	return errors.Join(errs...)
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
