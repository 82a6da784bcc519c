// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	maxLevels  = 1024 // of directories: what lies deeper stays
	openLevels = 16   // of which are open at a time
	readAtOnce = 8 << 10
)

// entry is what a walk found at one name.
type entry struct {
	parent int // descriptor of the directory that holds it
	name   string
	id     inode
	dir    bool
	mount  bool // something is mounted on it; nothing else is known of it
	full   bool // a directory in which something is left
	kept   bool // it is to stay

	levels []*level
}

// path is put together when it is asked for: in a deep tree it is long.
func (e entry) path() string { return pathOf(e.levels, e.name) }

// told is a path as an error has it.
func told(levels []*level, name string) string {
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

// walk calls visit for everything in the tree, a directory after what is in it,
// but not for the tree itself. What visit reports as left makes the directories
// above it full. An error of visit is added to the result, and the walk goes on.
func (t *tree) walk(ctx context.Context, keep *kept, visit func(entry) (left bool, err error)) (full bool, err error) {
	return t.walkWith(ctx, keep, &walker{visit: visit})
}

func (t *tree) walkWith(ctx context.Context, keep *kept, w *walker) (full bool, err error) {
	if !t.dir {
		return false, nil
	}
	dir, err := openSame(t.fd(), t.name, t.id)
	if err != nil {
		return true, &os.PathError{Op: "open", Path: t.path, Err: err}
	}
	return w.walk(ctx, &level{name: t.path, dir: dir, id: t.id, kept: keep.find(t.path)})
}

// walker goes through a tree by open directories: however deep or wide it is,
// each name costs the same, and few directories are open and few names in memory
// at a time.
type walker struct {
	visit    func(entry) (left bool, err error)
	passOver func(name string) bool // in the first directory; nil: nothing
	removes  bool                   // visit removes what does not stay
	levels   []*level               // from the first directory to the one that is being read
	errs     errorSet
	buffer   [readAtOnce]byte
}

// level is a directory on the way.
type level struct {
	name  string // of the first, its path
	dir   int    // descriptor; -1: it is closed for the time being
	id    inode
	kept  *kept
	names []string // that were read, and are still to be looked at
	next  int64    // where the directory is to be read on
	full  bool

	// In some file systems the place where a directory is to be read on moves
	// when names before it are removed. So one that was closed meanwhile, and in
	// which nothing stays, is read once more.
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
			w.errs.add(err)
			return true, w.errs.join()
		}
	}
	return first.full, w.errs.join()
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

// step looks at the next name. An error ends the walk.
func (w *walker) step() error {
	l := w.levels[len(w.levels)-1]
	name, err := w.name(l)
	switch {
	case err != nil:
		l.names = nil
		w.leave(l, &os.PathError{Op: "read", Path: told(w.levels[:len(w.levels)-1], l.name), Err: err})
		return w.up()
	case name == "":
		return w.up()
	case len(w.levels) == 1 && w.passOver != nil && w.passOver(name):
		return nil
	}
	w.look(l, name)
	return nil
}

// leave says why something stays in a directory.
func (w *walker) leave(l *level, err error) {
	l.full = true
	w.errs.add(err)
}

// name returns the next name in the directory; empty: there is none.
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

// look looks at a name, and goes into a directory: that is visited when it is
// left again.
func (w *walker) look(l *level, name string) {
	e, err := lookBelow(l.dir, name)
	if err != nil {
		w.leave(l, &os.PathError{Op: "open", Path: told(w.levels, name), Err: err})
		return
	}
	if e == nil {
		return
	}
	if !e.dir || e.mount {
		w.visited(l, e, l.kept.at(name))
		return
	}
	below, err := w.below(l, e)
	switch {
	case errors.Is(err, unix.ENOENT):
	case err != nil:
		w.leave(l, &os.PathError{Op: "open", Path: told(w.levels, name), Err: err})
	default:
		w.levels = append(w.levels, below)
		if n := len(w.levels) - openLevels; n > 0 {
			w.levels[n-1].close()
			w.levels[n-1].closed = true
		}
	}
}

// lookBelow returns nil where the name is gone by now.
func lookBelow(dir int, name string) (*entry, error) {
	e := &entry{parent: dir, name: name}
	fd, err := openBelow(dir, name, unix.O_PATH)
	switch {
	case errors.Is(err, unix.EXDEV):
		e.mount = true
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
	e.id, e.dir = inodeOf(&st), st.Mode&unix.S_IFMT == unix.S_IFDIR
	return e, nil
}

// below opens a directory, which must still be the one that was seen.
func (w *walker) below(l *level, e *entry) (*level, error) {
	if len(w.levels) == maxLevels {
		return nil, fmt.Errorf("it lies more than %d directories deep; left as it is", maxLevels)
	}
	fd, err := openBelow(l.dir, e.name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	if err := isInode(fd, e.id); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return &level{name: e.name, dir: fd, id: e.id, kept: l.kept.at(e.name)}, nil
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
			return &os.PathError{Op: "go back from", Path: told(w.levels, done.name), Err: err}
		}
	}
	w.visited(l, &entry{parent: l.dir, name: done.name, id: done.id, dir: true, full: done.full}, done.kept)
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

func (w *walker) visited(l *level, e *entry, keep *kept) {
	e.kept, e.levels = keep.stays(), w.levels
	left, err := w.visit(*e)
	l.full = l.full || left
	w.errs.add(err)
}
