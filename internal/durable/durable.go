// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package durable is the only way to files: safe from processes that change directories
// meanwhile, and such that a crash at any point leaves the old state or the new one,
// which survives a power loss once the call has returned.
//
// A path is safe only through an open directory: [OpenDir] walks to it element by element
// and follows no link that another user could have put there; a [Dir] then takes single
// names, and follows none.
//
// A file is written under a temporary name in its own directory (a watcher of a
// configuration directory sees a rename within it, while many miss a rename from
// elsewhere), synced, renamed over the target, and the directory synced. The writer holds
// a lock on the temporary file, so that [Dir.Sweep] can tell a dead writer's leftover from a
// live writer's work.
//
// Durability depends on the file system: an fsync that it refuses with EINVAL (some
// network file systems, on directories) is not an error. Links on the way are vetted on
// Linux only. Outside Unix there are no locks and no directory syncs, and Sweep removes
// nothing.
package durable

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/internal/code"
)

// ErrUntrusted is matched if a symbolic link on the way to a path is not followed, since
// a user other than root and the caller may have put it there.
var ErrUntrusted = code.New(code.HostUntrusted, "a symbolic link that others may change")

// ErrShared is matched if users other than root and this process's own may change the
// object at a path.
var ErrShared = code.New(code.HostUntrusted, "others than root may change it")

// Temporary names start with a dot and have no suffix that a CNI runtime, systemd-sysctl
// or run-parts would read.
const (
	tempPrefix = ".slipway-"
	fileSuffix = ".tmp"
	linkSuffix = ".lnk"
)

// StateDirMode is the mode of a state directory that slipway itself has made,
// and so may remove when nothing is left in it. The sticky bit marks it: the bit has no
// effect in a directory that only the owner may write to, and it is set from the
// directory's first moment. A directory that an administrator has made lacks it, and
// stays.
const StateDirMode = 0o700 | fs.ModeSticky

// IsTemporary reports whether name is a temporary name of a file or link: of a live
// writer, or of one that was killed.
func IsTemporary(name string) bool {
	return strings.HasPrefix(name, tempPrefix) && (strings.HasSuffix(name, fileSuffix) || strings.HasSuffix(name, linkSuffix))
}

func tempName(suffix string) string { return tempPrefix + rand.Text()[:16] + suffix }

// File is a file before it is put in place. Write it through the embedded *os.File, then
// call Commit; Abort, which may be deferred, drops it if it was not committed.
type File struct {
	*os.File // for writing, until Seal or Commit
	dir      *Dir
	name     string
	temp     string
	lock     *os.File // open for reading only: its lock shows that the writer lives
	done     bool
}

// Create opens a temporary file that is to become name, with mode (permission, setuid,
// setgid and sticky bits) in force from the start of its life under that name.
func (d *Dir) Create(name string, mode fs.FileMode) (*File, error) {
	if err := d.named(name); err != nil {
		return nil, err
	}
	for range 100 {
		f, err := d.tryCreate(name, mode)
		if err != nil {
			return nil, fmt.Errorf("create a temporary file for %s: %w", d.Path(name), err)
		}
		if f != nil {
			return f, nil
		}
	}
	return nil, fmt.Errorf("create a temporary file for %s: every name is taken", d.Path(name))
}

// tryCreate returns nil if the name is taken, or a sweeper was faster.
func (d *Dir) tryCreate(name string, mode fs.FileMode) (*File, error) {
	temp := tempName(fileSuffix)
	w, err := d.root.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f := &File{File: w, dir: d, name: name, temp: temp}
	locked := false
	if f.lock, locked, err = d.lockTemp(temp, w); err == nil && locked {
		if err = w.Chmod(mode); err == nil {
			return f, nil
		}
	}
	f.Abort()
	return nil, err
}

// Seal makes the content durable and closes the file for writing, also in programs that
// are just being started, so that a program in it can be run before and as soon as it is
// in place. Nothing can be written afterwards. Name is still the temporary file's.
func (f *File) Seal() error {
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", f.Name(), err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close %s: %w", f.Name(), err)
	}
	awaitNoWriter(f.lock)
	return nil
}

// Name returns the path of the temporary file.
func (f *File) Name() string { return f.dir.Path(f.temp) }

// Commit seals the file, unless that was done, and puts it in place. An existing file or
// symbolic link is replaced, not followed.
func (f *File) Commit() error {
	defer f.Abort()
	if err := f.Seal(); err != nil && !errors.Is(err, fs.ErrClosed) {
		return err
	}
	if err := f.stillThere(); err != nil {
		return err
	}
	if err := f.dir.root.Rename(f.temp, f.name); err != nil {
		return fmt.Errorf("put %s in place: %w", f.dir.Path(f.name), f.dir.at(err))
	}
	f.done = true
	defer f.lock.Close()
	return f.dir.Sync()
}

// stillThere returns an error if the temporary name does not lead to this file: a user
// who can write to the directory has put another there.
func (f *File) stillThere() error {
	if f.lock == nil {
		return nil
	}
	open, errOpen := f.lock.Stat()
	named, errNamed := f.dir.root.Lstat(f.temp)
	if err := errors.Join(errOpen, errNamed); err != nil {
		return fmt.Errorf("put %s in place: %w", f.dir.Path(f.name), err)
	}
	if !os.SameFile(open, named) {
		return fmt.Errorf("put %s in place: %s: %w", f.dir.Path(f.name), f.Name(), errExchanged)
	}
	return nil
}

// Abort drops the file, unless it was committed or aborted before.
func (f *File) Abort() {
	if f.done {
		return
	}
	f.done = true
	f.Close() // an error if it is sealed
	f.dir.root.Remove(f.temp)
	f.lock.Close() // last: without the lock a sweeper may come
}

// WriteFile writes content to path with mode.
func WriteFile(path string, mode fs.FileMode, content []byte) error {
	return In(path, func(d *Dir, name string) error { return d.WriteFile(name, mode, content) })
}

// WriteFile writes content to name with mode.
func (d *Dir) WriteFile(name string, mode fs.FileMode, content []byte) error {
	f, err := d.Create(name, mode)
	if err != nil {
		return err
	}
	defer f.Abort()
	if _, err := f.Write(content); err != nil {
		return fmt.Errorf("write %s: %w", d.Path(name), err)
	}
	return f.Commit()
}

// In calls f with the directory of path and its last element.
func In(path string, f func(d *Dir, name string) error) error {
	d, err := OpenDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	return f(d, filepath.Base(path))
}

// IgnoreGone returns nil for the error of what is not there.
func IgnoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
