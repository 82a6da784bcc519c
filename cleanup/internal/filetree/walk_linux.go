// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package filetree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/failure"
)

const (
	maxLevels   = 1024 // of directories, which are open at a time: deeper entries remain
	namesAtOnce = 256
)

// Entry is the file that a walk found at one name.
type Entry struct {
	ID    Inode
	IsDir bool
	Mount bool // something is mounted on it; nothing else is known of it
	Full  bool // a directory in which something remains
	Kept  bool
	Below bool // it is kept with the directory that it is in

	in   *level
	name string
}

// Name is the last element of the path.
func (e Entry) Name() string { return e.name }

// Path is put together when it is asked for: in a deep tree it is long.
func (e Entry) Path() string { return filepath.Join(e.in.path(), e.name) }

// failed is an error that names the path, or its ends if it is long.
func (e Entry) failed(op string, err error) error {
	const longest = 300
	path := e.Path()
	if len(path) > longest {
		path = path[:longest/2] + "..." + path[len(path)-longest/2:]
	}
	return &os.PathError{Op: op, Path: path, Err: err}
}

// level is a directory on the way.
type level struct {
	above *level
	depth int
	name  string // of the first, its path
	fd    int
	keep  *Keep
	full  bool
}

func (l *level) path() string {
	if l.above == nil {
		return l.name
	}
	return filepath.Join(l.above.path(), l.name)
}

// walker goes through a tree by open directories: however wide it is, few names are in memory
// at a time.
type walker struct {
	visit func(Entry) (remains bool, err error)
	match func(name string) bool // in the first directory; nil: any
	errs  failure.Set
}

// Walk calls visit for everything in the tree, a directory after its content, but not for
// the tree itself. An entry that remains according to visit makes the directories above
// it non-empty. An error of visit is added to the result, and the walk continues. Of the
// tree's own directory only the names that match, if that is not nil, are looked at.
func (t *Tree) Walk(ctx context.Context, keep *Keep, match func(name string) bool, visit func(Entry) (remains bool, err error)) (full bool, err error) {
	if !t.IsDir {
		return false, nil
	}
	fd, err := unix.Openat(t.fd(), t.Name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0) // a mount on it is entered
	if err == nil {
		err = isInode(fd, t.ID)
	}
	if err != nil {
		return true, &os.PathError{Op: "open", Path: t.Path, Err: err}
	}
	w := &walker{visit: visit, match: match}
	first := &level{name: t.Path, fd: fd, keep: keep.find(t.Path)}
	w.walk(ctx, first)
	if err := ctx.Err(); err != nil {
		first.full = true
		w.errs.Add(err)
	}
	return first.full, w.errs.Join()
}

// walk looks at everything in a directory, and closes it.
func (w *walker) walk(ctx context.Context, l *level) {
	dir := os.NewFile(uintptr(l.fd), l.name)
	defer dir.Close()
	for ctx.Err() == nil {
		names, err := dir.Readdirnames(namesAtOnce)
		slices.Sort(names)
		for _, name := range names {
			if ctx.Err() == nil && (l.above != nil || w.match == nil || w.match(name)) {
				w.look(ctx, Entry{in: l, name: name})
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, unix.ENOENT): // it was removed meanwhile
			return
		case err != nil:
			l.full = true
			w.errs.Add(Entry{in: l}.failed("read", errors.Unwrap(err)))
			return
		}
	}
}

// look examines a name, which may be gone by now, and a directory's content before the
// directory.
func (w *walker) look(ctx context.Context, e Entry) {
	below := &level{above: e.in, depth: e.in.depth + 1, name: e.name, keep: e.in.keep.at(e.name)}
	err := e.look()
	if err == nil && e.IsDir {
		below.fd, err = e.enter()
	}
	switch {
	case errors.Is(err, unix.ENOENT):
		return
	case err != nil:
		e.in.full = true
		w.errs.Add(e.failed("open", err))
		return
	case e.IsDir:
		w.walk(ctx, below)
		e.Full = below.full
	}
	if ctx.Err() != nil {
		return
	}
	e.Kept, e.Below = below.keep.itself(), e.in.keep != nil && e.in.keep.all
	remains, err := w.visit(e)
	e.in.full = e.in.full || remains
	w.errs.Add(err)
}

func (e *Entry) look() error {
	fd, err := openBelow(e.in.fd, e.name, unix.O_PATH)
	if errors.Is(err, unix.EXDEV) {
		e.Mount = true
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	e.ID, e.IsDir = InodeOf(&st), st.Mode&unix.S_IFMT == unix.S_IFDIR
	return nil
}

// enter opens a directory, which must still be the one that was seen.
func (e Entry) enter() (fd int, err error) {
	if e.in.depth+1 == maxLevels {
		return -1, fmt.Errorf("it lies more than %d directories deep; left as it is", maxLevels)
	}
	if fd, err = openBelow(e.in.fd, e.name, unix.O_RDONLY|unix.O_DIRECTORY); err != nil {
		return -1, err
	}
	return fd, isInode(fd, e.ID)
}
