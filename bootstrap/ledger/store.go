// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/filemode"
	"github.com/slipway-dev/slipway/internal/input"
	"github.com/slipway-dev/slipway/internal/remedy"
)

const (
	fileName      = "ledger"
	contentPrefix = "content."
	reportPrefix  = "report."

	maxContent  int64 = 1 << 30 // bytes of one content
	maxContents int64 = 4 << 30 // bytes of all
)

// A store has the file and the contents beside it. Each change is whole and durable when it
// returns.
type store interface {
	// read returns a file's content, and when it was written. It is nil if there is none.
	read(name string, limit int64) (content []byte, when time.Time, err error)
	write(name string, content []byte) error
	// version differs before and after a change of the records, even if that was undone since.
	version() string
	// keep stores the content of r, whose SHA-256 it verifies.
	keep(ctx context.Context, s State, r io.Reader) error
	open(sha256 string) (io.ReadCloser, error)
	// collect removes the files that are obsolete, and what killed writers have left.
	collect(obsolete func(name string) bool) error
	// leftovers reports whether collect would remove something.
	leftovers(obsolete func(name string) bool) (bool, error)
	// writable returns an error if write would fail, as far as that is known.
	writable() error
	// remove removes the file, all contents and the directory.
	remove() error
	close() error
}

// directory is a store on the file system. The directory above stays open, so that the
// store is found from every mount namespace.
type directory struct {
	parent *durable.Dir // nil: it does not exist
	path   string
}

// openDirectory opens the directory above, if there is one: without it nothing is recorded.
func openDirectory(path string) (*directory, error) {
	parent, err := durable.OpenDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return &directory{nil, path}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	return &directory{parent, path}, nil
}

func (d *directory) close() error {
	if d.parent == nil {
		return nil
	}
	return d.parent.Close()
}

// inDir calls f with the directory, or does nothing if it does not exist.
func (d *directory) inDir(f func(*durable.Dir) error) error {
	if d.parent == nil {
		return nil
	}
	dir, err := d.parent.OpenDir(filepath.Base(d.path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return withTrusted(dir, err, f)
}

// inNewDir calls f with the directory, which is made if it does not exist.
func (d *directory) inNewDir(f func(*durable.Dir) error) error {
	if d.parent == nil {
		return d.missing()
	}
	dir, err := d.parent.OpenDir(filepath.Base(d.path))
	if errors.Is(err, fs.ErrNotExist) {
		dir, err = d.parent.OpenNewDir(filepath.Base(d.path), durable.StateDirMode)
	}
	return withTrusted(dir, err, f)
}

// withTrusted calls f with an opened directory, if only this process's user can have
// written in it.
func withTrusted(dir *durable.Dir, err error, f func(*durable.Dir) error) error {
	if err != nil {
		return fmt.Errorf("state directory: %w", remedy.File(err))
	}
	defer dir.Close()
	info, err := dir.Stat()
	if err == nil {
		err = trusted(dir.Path(), info)
	}
	if err != nil {
		return err
	}
	return f(dir)
}

func (d *directory) read(name string, limit int64) (content []byte, when time.Time, err error) {
	err = d.inDir(func(dir *durable.Dir) error {
		f, err := openTrusted(dir, name)
		if f == nil || err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err == nil {
			when = info.ModTime()
			content, err = input.Read(context.Background(), f, limit)
		}
		return err
	})
	return content, when, err
}

// version is that of the file or, if there is none, of the directories in which it was made
// and removed. Where they cannot be read, read says why.
func (d *directory) version() (v string) {
	if d.parent == nil {
		return ""
	}
	if info, err := d.parent.Stat(); err == nil {
		v = identity(info)
	}
	_ = d.inDir(func(dir *durable.Dir) error {
		if info, err := dir.Lstat(fileName); err == nil {
			v = identity(info)
		} else if info, err := dir.Stat(); err == nil {
			v += identity(info)
		}
		return nil
	})
	return v
}

// openTrusted opens a file of the directory that only this process's user can have written.
// Nil: there is none.
func openTrusted(dir *durable.Dir, name string) (*os.File, error) {
	var f *os.File
	info, err := dir.Lstat(name)
	if err == nil {
		err = trusted(dir.Path(name), info)
	}
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a directory, not a file: %w (look at it, and move it away)", dir.Path(name), errUntrusted)
	}
	if err == nil {
		f, err = dir.Open(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", remedy.File(err))
	}
	if info, err = f.Stat(); err == nil {
		err = trusted(dir.Path(name), info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// write writes a file beside the present one, and renames it.
func (d *directory) write(name string, content []byte) error {
	return d.inNewDir(func(dir *durable.Dir) error {
		if err := dir.WriteFile(name, 0o600, content); err != nil {
			return fmt.Errorf("write the ledger: %w", remedy.File(err))
		}
		return nil
	})
}

// keep copies or clones and does not link: whoever has the original open could write into a
// link, and what is kept counts only with one link.
func (d *directory) keep(ctx context.Context, s State, r io.Reader) error {
	return d.inNewDir(func(dir *durable.Dir) error {
		total, err := kept(dir)
		if total += s.Size; err == nil && (s.Size > maxContent || total > maxContents) {
			err = fmt.Errorf("%d bytes of content would be kept, of which one has %d, and the limits are %d and %d: move large files away",
				total, s.Size, maxContents, maxContent)
		}
		if err != nil {
			return err
		}
		f, err := dir.Create(contentPrefix+s.SHA256, 0o600)
		if err != nil {
			return remedy.File(err)
		}
		defer f.Abort()
		if err := copyInto(ctx, f.File, r, &s); err != nil {
			return err
		}
		return f.Commit()
	})
}

// kept returns the bytes of all kept contents, those of killed runs too: they use the disk
// until they are collected.
func kept(dir *durable.Dir) (total int64, err error) {
	for name, err := range dir.All() {
		if err != nil {
			return 0, err
		}
		if info, err := dir.Lstat(name); err == nil && strings.HasPrefix(name, contentPrefix) {
			total += info.Size()
		}
	}
	return total, nil
}

// copyInto is copyContent into a new file. From another file, the kernel copies, and shares the
// blocks where the file system can (copy_file_range(2)): unlike a link, the copy keeps its content
// when the other one is written to.
func copyInto(ctx context.Context, f *os.File, r io.Reader, s *State) error {
	source, isFile := r.(*os.File)
	if !isFile {
		return copyContent(ctx, f, r, s)
	}
	if _, err := f.ReadFrom(io.LimitReader(source, maxContent+1)); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return copyContent(ctx, io.Discard, f, s)
}

// copyContent copies the content of state s, and returns an error if r has another. If its
// hash is not known, s gets it.
func copyContent(ctx context.Context, w io.Writer, r io.Reader, s *State) error {
	limit := maxContent
	if s.SHA256 != "" {
		limit = s.Size
	}
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, hash), io.LimitReader(input.WithContext(ctx, r), limit+1))
	sum := hex.EncodeToString(hash.Sum(nil))
	switch {
	case err != nil:
		return err
	case s.SHA256 != "" && s.SHA256 != sum:
		return fmt.Errorf("the content has the SHA-256 %s, not %s: it was changed meanwhile, or is damaged", sum, s.SHA256)
	case n > limit:
		return errTooLarge
	}
	s.Size, s.SHA256 = n, sum
	return nil
}

var errTooLarge = fmt.Errorf("its content is larger than %d bytes, which is too much to keep: move it away", maxContent)

func (d *directory) open(sha256 string) (f io.ReadCloser, err error) {
	err = d.inDir(func(dir *durable.Dir) error {
		file, err := openTrusted(dir, contentPrefix+sha256)
		if file != nil {
			f = file
		}
		return err
	})
	if f == nil && err == nil {
		err = fmt.Errorf("the kept content %s is missing", sha256)
	}
	return f, err
}

// collect looks at all names, and not at what the last run knew: a killed run may have left
// contents that no file has ever named.
func (d *directory) collect(obsolete func(name string) bool) error {
	return d.inDir(func(dir *durable.Dir) error {
		errs := []error{dir.Sweep()}
		for name, err := range dir.All() {
			if err == nil && obsolete(name) {
				err = dir.Remove(name)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

func (d *directory) leftovers(obsolete func(name string) bool) (found bool, err error) {
	err = d.inDir(func(dir *durable.Dir) error {
		for name, err := range dir.All() {
			if err != nil {
				return durable.IgnoreGone(err) // an uninstall has just removed it
			}
			found = found || durable.IsTemporary(name) || obsolete(name)
		}
		return nil
	})
	return found, err
}

// writable looks at open directories: this process may be in a container, and they on the
// host.
func (d *directory) writable() error {
	if d.parent == nil {
		return d.missing()
	}
	isReadOnly := d.parent.ReadOnly()
	err := d.inDir(func(dir *durable.Dir) error {
		isReadOnly = dir.ReadOnly()
		return nil
	})
	if err != nil || !isReadOnly {
		return err
	}
	return fmt.Errorf("state directory %s: %w", d.path, remedy.Add(syscall.EROFS, "name another state directory, on a file system that can be written to"))
}

func (d *directory) missing() error {
	return fmt.Errorf("state directory %s: %s: %w (create it, or name another state directory)", d.path, filepath.Dir(d.path), fs.ErrNotExist)
}

// remove leaves a directory that an administrator has made, and one on which something is
// mounted. A directory that has the mode that ours get was made by us.
func (d *directory) remove() error {
	ours := false
	err := d.inDir(func(dir *durable.Dir) error {
		info, err := dir.Stat()
		ours = err == nil && info.Mode() == fs.ModeDir|durable.StateDirMode
		if err == nil {
			err = dir.Remove(fileName) // first: it names the contents
		}
		if err == nil {
			err = d.collect(newSheet().obsolete())
		}
		return err
	})
	if err != nil || !ours {
		return err
	}
	err = d.parent.Remove(filepath.Base(d.path))
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) || errors.Is(err, syscall.EBUSY) {
		return nil
	}
	return err
}

// fileStat is what the system knows of a file.
type fileStat struct {
	known                bool
	uid, gid             int
	links, inode, device uint64
}

// trusted returns an error unless it is a file or directory, and belongs to this process's
// user and no other may write there. A group may; but if that user is root, only the group
// root.
func trusted(path string, info fs.FileInfo) error {
	st, uid := stat(info), os.Geteuid()
	groupMay := uid != 0 || st.gid == 0
	switch {
	case !st.known:
		return nil
	case !info.IsDir() && !info.Mode().IsRegular():
		return fmt.Errorf("%s is a %s, not a file: %w (look at it, and move it away)", path, filemode.Type(info.Mode()), errUntrusted)
	case st.uid != uid:
		return fmt.Errorf("%s belongs to uid %d: %w (chown it to %d once you have looked at its content)", path, st.uid, errUntrusted, uid)
	case info.Mode()&0o002 != 0, info.Mode()&0o020 != 0 && !groupMay:
		return fmt.Errorf("%s has mode %04o: %w (chmod go-w it once you have looked at its content)",
			path, filemode.Unix(info.Mode()), errUntrusted)
	case !info.IsDir() && st.links > 1:
		return fmt.Errorf("%s has hard links: %w (look at its content, and replace it by a copy)", path, errUntrusted)
	}
	return nil
}

// identity is a file's inode and modification time: an equal file that a package puts in its
// place has neither, one that is only touched the inode, and one on a copied disk the time.
func identity(info fs.FileInfo) string {
	return fmt.Sprint(stat(info).inode, " ", info.ModTime().UnixNano())
}
