// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package durable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/internal/input"
)

// errExchanged is the error if a name led to another object from one call to the next,
// since another process is changing the directory.
var errExchanged = errors.New("it was exchanged for something else meanwhile")

// Dir is an open directory. Whatever happens to its path, it stays the same directory, in
// every mount namespace. The names that its methods take are single elements, and a
// symbolic link is never followed.
type Dir struct {
	root     *os.Root
	self     *os.File
	path     string // the path it was opened by
	unsynced bool
}

// OpenDir opens the directory at path. A symbolic link on the way, or at the
// end, is followed only if root or the caller must have put it there: one of them owns
// it, and one of them the directory that holds it, which other users cannot write to
// unless it is sticky. Any other link is an error that matches [ErrUntrusted].
func OpenDir(path string) (*Dir, error) {
	return again(func() (*Dir, error) { return openDir(path) })
}

// again repeats open while another process changes what it opens, a hundred times at
// most.
func again[T any](open func() (T, error)) (t T, err error) {
	for range 100 {
		if t, err = open(); !errors.Is(err, errExchanged) {
			break
		}
	}
	return t, err
}

func openDir(path string) (*Dir, error) {
	vetted, err := walk(path)
	if err != nil {
		return nil, err
	}
	defer vetted.Close()
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	d, err := newDir(root, path)
	if err != nil {
		return nil, err
	}
	if err := sameFile(vetted, d.self); err != nil {
		d.Close()
		return nil, &fs.PathError{Op: "open directory", Path: path, Err: err}
	}
	return d, nil
}

// newDir takes root over.
func newDir(root *os.Root, path string) (*Dir, error) {
	d := &Dir{root: root, path: path}
	self, err := root.Open(".")
	if err != nil {
		root.Close()
		return nil, d.at(err)
	}
	d.self = self
	return d, nil
}

func sameFile(a, b interface{ Stat() (fs.FileInfo, error) }) error {
	infoA, errA := a.Stat()
	infoB, errB := b.Stat()
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	if !os.SameFile(infoA, infoB) {
		return errExchanged
	}
	return nil
}

// Close closes the directory.
func (d *Dir) Close() error { return errors.Join(d.root.Close(), d.self.Close()) }

// Unsynced returns the same directory for a batch of changes: they are durable only after
// its Sync. It is closed with d.
func (d *Dir) Unsynced() *Dir { return &Dir{d.root, d.self, d.path, true} }

// changed makes a change durable.
func (d *Dir) changed() error {
	if d.unsynced {
		return nil
	}
	return d.Sync()
}

// Path returns the path that the directory was opened by, joined with names.
func (d *Dir) Path(names ...string) string {
	return filepath.Join(append([]string{d.path}, names...)...)
}

// RealPath returns the directory's path without symbolic links.
func (d *Dir) RealPath() (string, error) {
	path, err := filepath.EvalSymlinks(d.path)
	if err != nil {
		return "", err
	}
	open, errOpen := d.Stat()
	named, errNamed := os.Lstat(path)
	if err := errors.Join(errOpen, errNamed); err != nil {
		return "", err
	}
	if !os.SameFile(open, named) {
		return "", fmt.Errorf("%s: %w", path, errExchanged)
	}
	return path, nil
}

// File returns the open directory itself, to query its file system type, its owner and so
// on. It must not be closed.
func (d *Dir) File() *os.File { return d.self }

// at returns an error of root's with whole paths: root has only names.
func (d *Dir) at(err error) error {
	switch e := err.(type) {
	case *fs.PathError:
		return &fs.PathError{Op: e.Op, Path: d.Path(e.Path), Err: e.Err}
	case *os.LinkError:
		return &os.LinkError{Op: e.Op, Old: d.Path(e.Old), New: d.Path(e.New), Err: e.Err}
	}
	return err
}

// Stat describes the directory itself.
func (d *Dir) Stat() (fs.FileInfo, error) { return d.self.Stat() }

// named returns an error unless name is a single element.
func (d *Dir) named(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") || !filepath.IsLocal(name) {
		return &fs.PathError{Op: "open", Path: d.Path(name), Err: fs.ErrInvalid}
	}
	return nil
}

// Lstat describes the object called name.
func (d *Dir) Lstat(name string) (fs.FileInfo, error) {
	if err := d.named(name); err != nil {
		return nil, err
	}
	info, err := d.root.Lstat(name)
	return info, d.at(err)
}

// Readlink returns where the symbolic link leads.
func (d *Dir) Readlink(name string) (string, error) {
	if err := d.named(name); err != nil {
		return "", err
	}
	target, err := d.root.Readlink(name)
	return target, d.at(err)
}

// All yields the names in the directory, in no order, and the error that stopped it
// early. Few are in memory at a time.
func (d *Dir) All() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		f, err := d.root.Open(".") // with an offset of its own
		if err != nil {
			yield("", d.at(err))
			return
		}
		defer f.Close()
		input.Names(f)(yield)
	}
}

// NamesAtMost lists the names in a directory, in no order, if there are at most this
// many; more are an error.
func (d *Dir) NamesAtMost(limit int) (names []string, err error) {
	for name, err := range d.All() {
		if err == nil && len(names) == limit {
			err = &fs.PathError{Op: "list", Path: d.Path(), Err: fmt.Errorf("it holds more than %d names", limit)}
		}
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// Open opens a regular file for reading. Anything else is an error, without waiting.
func (d *Dir) Open(name string) (*os.File, error) { return d.openFile(name, os.O_RDONLY) }

func (d *Dir) openFile(name string, flag int) (*os.File, error) {
	return again(func() (*os.File, error) { return d.tryOpenFile(name, flag) })
}

func (d *Dir) tryOpenFile(name string, flag int) (*os.File, error) {
	seen, err := d.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !seen.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: d.Path(name), Err: errNotRegular}
	}
	f, err := d.root.OpenFile(name, flag|nonBlock, 0)
	if err != nil {
		return nil, d.at(err)
	}
	if err := d.isStill(name, seen, f); err != nil {
		return nil, err
	}
	return f, nil
}

// isStill closes what was opened, with an error, unless it is the object that was seen under
// name.
func (d *Dir) isStill(name string, seen fs.FileInfo, opened interface {
	io.Closer
	Stat() (fs.FileInfo, error)
}) error {
	info, err := opened.Stat()
	if err == nil && !os.SameFile(seen, info) {
		err = &fs.PathError{Op: "open", Path: d.Path(name), Err: errExchanged}
	}
	if err != nil {
		return errors.Join(err, opened.Close())
	}
	return nil
}

var errNotRegular = errors.New("not a regular file")

// ReadFile reads a regular file of at most limit bytes.
func (d *Dir) ReadFile(name string, limit int64) ([]byte, error) {
	f, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return input.Read(context.Background(), f, limit)
}

// OpenDir opens a directory below.
func (d *Dir) OpenDir(name string) (*Dir, error) {
	return again(func() (*Dir, error) { return d.openDir(name) })
}

func (d *Dir) openDir(name string) (*Dir, error) {
	seen, err := d.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		return nil, &fs.PathError{Op: "open directory", Path: d.Path(name), Err: syscall.ENOTDIR}
	}
	root, err := d.root.OpenRoot(name)
	if err != nil {
		return nil, d.at(err)
	}
	below, err := newDir(root, d.Path(name))
	if err != nil {
		return nil, err
	}
	if err := d.isStill(name, seen, below); err != nil {
		return nil, err
	}
	return below, nil
}

// OpenNewDir makes a directory, durably, with mode whatever the umask, and opens it.
func (d *Dir) OpenNewDir(name string, mode fs.FileMode) (*Dir, error) {
	if err := d.named(name); err != nil {
		return nil, err
	}
	if err := d.mkdir(name, mode); err != nil {
		return nil, err
	}
	made, err := d.OpenDir(name)
	if err != nil {
		return nil, errors.Join(err, d.at(d.root.Remove(name)))
	}
	if err := errors.Join(made.setMode(mode), d.changed()); err != nil {
		made.Close()
		return nil, errors.Join(err, d.at(d.root.Remove(name))) // it does not have the wanted mode
	}
	return made, nil
}

// setMode gives a new directory the bits that the umask has taken away. A directory that
// is not empty is not the new one: the owner of the parent can have put another of ours
// in its place.
func (d *Dir) setMode(mode fs.FileMode) error {
	info, err := d.Stat()
	if err != nil || info.Mode()&modeBits == mode&modeBits || !ownedByUs(info) {
		return err
	}
	if _, err := d.NamesAtMost(0); err != nil {
		return &fs.PathError{Op: "mkdir", Path: d.path, Err: fmt.Errorf("%w: %w", errExchanged, err)}
	}
	return d.self.Chmod(mode)
}

// CreateNew makes an empty file, durably, with mode whatever the umask. If name
// exists, the error matches [fs.ErrExist].
func (d *Dir) CreateNew(name string, mode fs.FileMode) error {
	f, err := d.OpenNew(name, mode)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close(), d.changed()); err != nil {
		return errors.Join(err, d.at(d.root.Remove(name)))
	}
	return nil
}

// OpenNew makes a file with mode whatever the umask, and opens it for writing.
// It is durable after its own Sync and the directory's. If name exists, the
// error matches [fs.ErrExist].
func (d *Dir) OpenNew(name string, mode fs.FileMode) (*os.File, error) {
	if err := d.named(name); err != nil {
		return nil, err
	}
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode.Perm())
	if err != nil {
		return nil, d.at(err)
	}
	if err := f.Chmod(mode); err != nil {
		return nil, errors.Join(err, f.Close(), d.at(d.root.Remove(name))) // it does not have the wanted mode
	}
	return f, nil
}

// OpenOrCreate opens a regular file for reading and writing, and makes an empty
// one with mode if name does not exist.
func (d *Dir) OpenOrCreate(name string, mode fs.FileMode) (*os.File, error) {
	f, err := d.openFile(name, os.O_RDWR)
	if errors.Is(err, errNotRegular) {
		return nil, fmt.Errorf("%w: move it away", err)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if err := d.CreateNew(name, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return d.openFile(name, os.O_RDWR)
}

const modeBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// Rename renames within the directory, over an existing file or link, and makes it
// durable.
func (d *Dir) Rename(from, to string) error {
	if err := errors.Join(d.named(from), d.named(to)); err != nil {
		return err
	}
	if err := d.root.Rename(from, to); err != nil {
		return d.at(err)
	}
	return d.changed()
}

// RenameNew renames within the directory to an unused name, and makes it durable. If the
// name exists, the error matches [fs.ErrExist].
func (d *Dir) RenameNew(from, to string) error {
	if err := errors.Join(d.named(from), d.named(to)); err != nil {
		return err
	}
	if err := d.renameNew(from, to); err != nil {
		return &os.LinkError{Op: "rename", Old: d.Path(from), New: d.Path(to), Err: err}
	}
	return d.changed()
}

// renameChecked is renameNew for systems that cannot do it in one step.
func (d *Dir) renameChecked(from, to string) error {
	if _, err := d.root.Lstat(to); err == nil {
		return fs.ErrExist
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.root.Rename(from, to)
}

// SymlinkNew makes a symbolic link. If name exists, the error matches
// [fs.ErrExist].
func (d *Dir) SymlinkNew(target, name string) error {
	if err := d.named(name); err != nil {
		return err
	}
	if err := d.root.Symlink(target, name); err != nil {
		return fmt.Errorf("make the symbolic link %s: %w", d.Path(name), err)
	}
	return d.changed()
}

// Symlink makes name a symbolic link to target, replacing a file or link.
func (d *Dir) Symlink(target, name string) error {
	if err := d.named(name); err != nil {
		return err
	}
	const tries = 100 // a sweeper may take the temporary link away
	for try := 1; ; try++ {
		temp := tempName(linkSuffix)
		if err := d.root.Symlink(target, temp); err != nil {
			return fmt.Errorf("make a temporary link for %s: %w", d.Path(name), err)
		}
		err := d.root.Rename(temp, name)
		switch {
		case err == nil:
			return d.changed()
		case errors.Is(err, fs.ErrNotExist) && try < tries:
		default:
			d.root.Remove(temp)
			return fmt.Errorf("put %s in place: %w", d.Path(name), err)
		}
	}
}

// Remove removes a file, link or empty directory. One that is already gone is
// no error.
func (d *Dir) Remove(name string) error {
	if err := d.named(name); err != nil {
		return err
	}
	if err := d.root.Remove(name); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return d.at(err)
	}
	return d.changed()
}

// Sweep removes leftovers of killed writers from the directory, and nothing of a live
// writer.
func (d *Dir) Sweep() error {
	var errs []error
	for name, err := range d.All() {
		if err == nil && strings.HasPrefix(name, tempPrefix) {
			err = d.sweepName(name)
		}
		if err != nil && len(errs) < maxSweepErrors {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// maxSweepErrors is how many failures are reported: further ones are alike.
const maxSweepErrors = 10

func (d *Dir) sweepName(name string) error {
	info, err := d.root.Lstat(name)
	switch {
	case err != nil:
		return IgnoreGone(err)
	case strings.HasSuffix(name, fileSuffix) && info.Mode().IsRegular():
		return d.sweepFile(name)
	case strings.HasSuffix(name, linkSuffix) && info.Mode().Type() == fs.ModeSymlink:
		return IgnoreGone(d.root.Remove(name)) // a live writer makes another
	}
	return nil
}
