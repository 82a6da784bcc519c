// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package filetree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/failure"
)

const (
	maxLevels  = 1024 // of directories: deeper entries remain
	openLevels = 16   // open at a time
	readAtOnce = 8 << 10
)

// Entry is the file that a walk found at one name.
type Entry struct {
	ID    Inode
	IsDir bool
	Mount bool // something is mounted on it; nothing else is known of it
	Full  bool // a directory in which something remains
	Kept  bool
	Below bool // it is kept with the directory that it is in

	parent int // descriptor of the directory that it is in
	name   string
	levels []*level
}

// Name is the last element of the path.
func (e Entry) Name() string { return e.name }

// Path is put together when it is asked for: in a deep tree it is long.
func (e Entry) Path() string { return pathOf(e.levels, e.name) }

// displayPath returns a path as errors show it.
func displayPath(levels []*level, name string) string {
	const longest = 300
	path := pathOf(levels, name)
	if len(path) > longest {
		path = path[:longest/2] + "..." + path[len(path)-longest/2:]
	}
	return path
}

func pathOf(levels []*level, name string) string {
	var b strings.Builder
	for _, l := range levels {
		b.WriteString(l.name)
		b.WriteByte('/')
	}
	b.WriteString(name)
	return b.String()
}

// Walk calls visit for everything in the tree, a directory after its content, but not for
// the tree itself. An entry that remains according to visit makes the directories above
// it non-empty. An error of visit is added to the result, and the walk continues. Of the
// tree's own directory only the names that match, if that is not nil, are looked at.
func (t *Tree) Walk(ctx context.Context, keep *Keep, match func(name string) bool, visit func(Entry) (remains bool, err error)) (full bool, err error) {
	return t.walk(ctx, keep, &walker{visit: visit, match: match})
}

func (t *Tree) walk(ctx context.Context, keep *Keep, w *walker) (full bool, err error) {
	if !t.IsDir {
		return false, nil
	}
	dir, err := openSame(t.fd(), t.Name, t.ID)
	if err != nil {
		return true, &os.PathError{Op: "open", Path: t.Path, Err: err}
	}
	return w.walk(ctx, &level{name: t.Path, dir: dir, id: t.ID, keep: keep.find(t.Path)})
}

// walker goes through a tree by open directories: however deep or wide it is,
// each name costs the same, and few directories are open and few names in memory
// at a time.
type walker struct {
	visit   func(Entry) (remains bool, err error)
	match   func(name string) bool // in the first directory; nil: any
	removes bool                   // visit removes entries that do not remain
	levels  []*level               // from the first directory to the one that is being read
	errs    failure.Set
	buffer  [readAtOnce]byte
}

// level is a directory on the way.
type level struct {
	name  string // of the first, its path
	dir   int    // descriptor; -1: it is closed for the time being
	id    Inode
	keep  *Keep
	names []string // that were read and not yet looked at
	next  int64    // where to read on in the directory
	full  bool

	// In some file systems the offset to read on from moves when names before
	// it are removed. So a directory that was closed meanwhile, and in
	// which nothing remains, is read once more.
	closed, twice bool
}

// walk takes over the descriptor of the first directory.
func (w *walker) walk(ctx context.Context, first *level) (full bool, err error) {
	w.levels = []*level{first}
	defer w.close()
	for len(w.levels) > 0 {
		err := ctx.Err()
		if err == nil {
			err = w.step()
		}
		if err != nil {
			w.errs.Add(err)
			return true, w.errs.Join()
		}
	}
	return first.full, w.errs.Join()
}

func (w *walker) close() {
	for _, l := range w.levels {
		l.close()
	}
}

func (l *level) close() {
	if l.dir >= 0 {
		_ = unix.Close(l.dir) // nothing was written
	}
	l.dir = -1
}

// step examines the next name. An error ends the walk.
func (w *walker) step() error {
	l := w.levels[len(w.levels)-1]
	name, err := w.name(l)
	switch {
	case err != nil:
		l.names = nil
		w.fill(l, &os.PathError{Op: "read", Path: displayPath(w.levels[:len(w.levels)-1], l.name), Err: err})
		return w.up()
	case name == "":
		return w.up()
	case len(w.levels) == 1 && w.match != nil && !w.match(name):
		return nil
	}
	w.look(l, name)
	return nil
}

// fill records why an entry remains in a directory.
func (w *walker) fill(l *level, err error) {
	l.full = true
	w.errs.Add(err)
}

// name returns the next name in the directory, or "" at its end.
func (w *walker) name(l *level) (string, error) {
	for len(l.names) == 0 {
		n, err := unix.ReadDirent(l.dir, w.buffer[:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ENOENT): // it was removed meanwhile
			return "", nil
		case err != nil:
			return "", err
		}
		if n <= 0 {
			if !w.removes || !l.closed || l.twice || l.full {
				return "", nil
			}
			l.twice = true
			if _, err := unix.Seek(l.dir, 0, io.SeekStart); err != nil {
				return "", err
			}
			continue
		}
		_, _, l.names = unix.ParseDirent(w.buffer[:n], -1, nil)
		slices.Sort(l.names)
		if l.next, err = unix.Seek(l.dir, 0, io.SeekCurrent); err != nil {
			return "", err
		}
	}
	name := l.names[0]
	l.names = l.names[1:]
	return name, nil
}

// look examines a name, and enters a directory, which is visited after its content.
func (w *walker) look(l *level, name string) {
	e, err := lookBelow(l.dir, name)
	if err != nil {
		w.fill(l, &os.PathError{Op: "open", Path: displayPath(w.levels, name), Err: err})
		return
	}
	if e == nil {
		return
	}
	if !e.IsDir || e.Mount {
		w.visited(l, e, l.keep.at(name))
		return
	}
	below, err := w.below(l, e)
	switch {
	case errors.Is(err, unix.ENOENT):
	case err != nil:
		w.fill(l, &os.PathError{Op: "open", Path: displayPath(w.levels, name), Err: err})
	default:
		w.levels = append(w.levels, below)
		if n := len(w.levels) - openLevels; n > 0 {
			w.levels[n-1].close()
			w.levels[n-1].closed = true
		}
	}
}

// lookBelow returns nil where the name is gone by now.
func lookBelow(dir int, name string) (*Entry, error) {
	e := &Entry{parent: dir, name: name}
	fd, err := openBelow(dir, name, unix.O_PATH)
	switch {
	case errors.Is(err, unix.EXDEV):
		e.Mount = true
		return e, nil
	case errors.Is(err, unix.ENOENT):
		return nil, nil
	case err != nil:
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	e.ID, e.IsDir = InodeOf(&st), st.Mode&unix.S_IFMT == unix.S_IFDIR
	return e, nil
}

// below opens a directory, which must still be the one that was seen.
func (w *walker) below(l *level, e *Entry) (*level, error) {
	if len(w.levels) == maxLevels {
		return nil, fmt.Errorf("it lies more than %d directories deep; left as it is", maxLevels)
	}
	fd, err := openBelow(l.dir, e.name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	if err := isInode(fd, e.ID); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return &level{name: e.name, dir: fd, id: e.ID, keep: l.keep.at(e.name)}, nil
}

// up leaves a directory, and visits it where it is.
func (w *walker) up() error {
	done := w.levels[len(w.levels)-1]
	defer done.close()
	w.levels = w.levels[:len(w.levels)-1]
	if len(w.levels) == 0 {
		return nil
	}
	l := w.levels[len(w.levels)-1]
	if l.dir < 0 {
		if err := l.reopen(done.dir); err != nil {
			return &os.PathError{Op: "go back from", Path: displayPath(w.levels, done.name), Err: err}
		}
	}
	w.visited(l, &Entry{parent: l.dir, name: done.name, ID: done.id, IsDir: true, Full: done.full}, done.keep)
	return nil
}

// reopen opens a directory again, from one that is in it.
func (l *level) reopen(from int) (err error) {
	if l.dir, err = openSame(from, "..", l.id); err != nil {
		return err
	}
	_, err = unix.Seek(l.dir, l.next, io.SeekStart)
	return err
}

func (w *walker) visited(l *level, e *Entry, keep *Keep) {
	e.Kept, e.Below, e.levels = keep.itself(), l.keep != nil && l.keep.all, w.levels
	remains, err := w.visit(*e)
	l.full = l.full || remains
	w.errs.Add(err)
}
