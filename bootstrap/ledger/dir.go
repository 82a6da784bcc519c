// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/filemode"
	"github.com/slipway-dev/slipway/internal/printable"
	"github.com/slipway-dev/slipway/internal/remedy"
)

const (
	typeDir = "dir"
	covered = "mount point" // the value of a directory that something is mounted on

	mountSpace = "mount"
)

// Dir returns the kind of directories. An object is an absolute path. A directory is
// removed only if it is empty, but for what goes with it.
func Dir() *Kind {
	return &Kind{
		Name: "dir", Space: pathSpace,
		Read: readDir, Write: writeDir, Same: sameDir, Describe: describePath("make", "directory"), Keeps: keepsDir,
		Canonical: canonicalPath, Owns: ownsPath, Permission: mayWrite(fs.FileMode.IsDir), EndsWithBoot: endsWithBoot,
	}
}

// DirWants wants path and the directories above it that are missing, the outermost first.
// Existing directories are not wanted: they belong to whoever has made them.
func DirWants(path string, mode fs.FileMode) (wants []Want, err error) {
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		d, err := durable.OpenDir(dir)
		if err == nil {
			slices.Reverse(wants)
			return wants, d.Close()
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return nil, err
		}
		wants = append(wants, Want{Kind: Dir(), Object: dir, To: ownedState(typeDir, mode), Loose: true})
	}
}

// readDir tells a link that leads to a directory from a directory: an agent makes no such
// links, and removes none.
func readDir(_ context.Context, path string) (State, error) {
	return readPath(path, func(d *durable.Dir, _ string, info fs.FileInfo) (State, error) {
		s := statOf(info)
		s.Changed = time.Time{} // its content changes that too
		hidden, err := isCovered(d, info)
		switch {
		case err != nil:
			return s, err
		case info.IsDir() && hidden:
			return State{Type: typeDir, Value: covered}, nil
		case info.IsDir():
			s.Type, s.Value = typeDir, ""
		case s.Type == typeSymlink:
			return readDirLink(path, s)
		default:
			s.Type, s.Value = "other", filemode.Type(info.Mode())
		}
		return s, nil
	})
}

// isCovered reports whether another file system is mounted on a directory of d: the attributes
// are then of that one's top.
func isCovered(d *durable.Dir, info fs.FileInfo) (bool, error) {
	parent, err := d.Stat()
	return err == nil && stat(parent).device != stat(info).device, err
}

// sameDir takes a directory that something is mounted on for whichever it was: its own
// attributes are not to be seen.
func sameDir(a, b State) bool {
	return a.Equal(b) || a.Type == b.Type && (a.Value == covered || b.Value == covered)
}

// readDirLink looks where a link leads: hosts have such directories (/var/run).
func readDirLink(path string, s State) (State, error) {
	target, err := durable.OpenDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("it is a link that leads nowhere: %s", printable.Line(path))
	}
	if err != nil {
		return s, err
	}
	s.Type, s.Value = typeDir, "link"
	return s, target.Close()
}

// writeDir makes a directory, or sets the attributes of an existing one, by its descriptor:
// its name could lead to another by then. A link that an original was cannot come back, since
// its target is not recorded.
func writeDir(_ context.Context, path string, to State) error {
	return remedy.File(inParent(path, func(d *durable.Dir, name string) error {
		if err := to.isOver(d, name); err != nil {
			return err
		}
		switch {
		case to.IsZero():
			return removeDir(d, name)
		case to.Type != typeDir || to.Value != "":
			return fmt.Errorf("a %s cannot be made", to.Value)
		}
		dir, err := openOver(d, name, to)
		if err != nil {
			return err
		}
		defer dir.Close()
		return setAttributes(dir.File(), to)
	}))
}

// openOver opens the directory that was read, or makes it.
func openOver(d *durable.Dir, name string, to State) (*durable.Dir, error) {
	if to.over == nil || to.over.IsZero() {
		made, err := d.OpenNewDir(name, filemode.Go(to.Mode))
		if err == nil || to.over != nil || !errors.Is(err, fs.ErrExist) {
			return made, err
		}
	}
	dir, err := d.OpenDir(name)
	if err != nil || to.over == nil {
		return dir, err
	}
	info, err := dir.Stat()
	if err == nil && !os.SameFile(info, to.over.seen) {
		err = exchanged(dir.Path("."))
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// removeDir removes an empty directory, with what killed writers have left in it. The system
// call removes no other, whatever was put into it since it was looked at.
func removeDir(d *durable.Dir, name string) error {
	dir, err := d.OpenDir(name)
	if isGone(err) {
		return durable.IgnoreGone(err)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(dir.Sweep(), dir.Close()); err != nil {
		return err
	}
	err = d.Remove(name)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
		return fmt.Errorf("it is %w: something was put into it just now: %w", ErrChanged, err)
	}
	return err
}

// keepsDir returns an error for a directory that is to be removed, and holds something that
// stays. It is asked beforehand, so that nothing is undone of what such a directory needs. What
// is under a mount that goes is not to be seen yet.
func keepsDir(_ context.Context, path string, after StateAfter) (why string, err error) {
	if to, changes := after(Dir(), path); changes && !to.IsZero() {
		return "", nil
	}
	if to, changes := after(&Kind{Space: mountSpace}, path); changes && to.IsZero() {
		return "", nil
	}
	err = inParent(path, func(d *durable.Dir, name string) error {
		dir, err := d.OpenDir(name)
		if err != nil {
			return err
		}
		defer dir.Close()
		info, err := dir.Stat()
		if err != nil {
			return err
		}
		if hidden, err := isCovered(d, info); err != nil || hidden {
			return cmp.Or(err, fmt.Errorf("%w: something is mounted on it", ErrChanged))
		}
		return stayingIn(dir, path, after)
	})
	if isGone(err) {
		err = nil
	}
	return "", err
}

// stayingIn returns an error that names what is not removed with the directory. Temporary
// files are: they are swept.
func stayingIn(dir *durable.Dir, path string, after StateAfter) error {
	for name, err := range dir.All() {
		if err != nil {
			return err
		}
		to, changes := after(Dir(), filepath.Join(path, name))
		if !durable.IsTemporary(name) && (!changes || !to.IsZero()) {
			return fmt.Errorf("%w: it holds %s, and goes once that has gone", ErrChanged, printable.Line(name))
		}
	}
	return nil
}
