// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/filemode"
	"github.com/slipway-dev/slipway/internal/input"
	"github.com/slipway-dev/slipway/internal/printable"
	"github.com/slipway-dev/slipway/internal/remedy"
)

const (
	typeFile    = "file"
	typeSymlink = "symlink"
)

// File returns the kind of regular files and symbolic links. An object is an absolute path.
// Its last element is never followed; a link on the way only if root or the process's user
// has put it there.
//
// Set-user-id and set-group-id bits are neither recorded nor written.
func File() *Kind {
	return &Kind{
		Name: "file", Space: pathSpace,
		Read: readFile, Write: writeFile, Stage: stageFile, Sweep: sweepBeside, Describe: describePath("write", "file"),
		Lost: lostFile, Canonical: canonicalPath, Owns: ownsPath, Permission: mayWrite(fs.FileMode.IsRegular), EndsWithBoot: endsWithBoot,
	}
}

// FileWant wants a file with this content and mode, of the process's user. If the content is
// to be read only once, set To.Open, and leave To.SHA256 empty.
func FileWant(path string, mode fs.FileMode, content []byte) Want {
	return Want{Kind: File(), Object: path, To: ownedState(typeFile, mode).WithContent(content)}
}

// ownedState is of an object that this process makes.
func ownedState(of string, mode fs.FileMode) State {
	return State{Type: of, Mode: filemode.Unix(mode) & modeBits, UID: max(os.Geteuid(), 0), GID: max(os.Getegid(), 0)}
}

// modeBits are those that are recorded: no set-user-id bit comes from a ledger.
const modeBits = 0o1777

// statOf describes what Lstat has found.
func statOf(info fs.FileInfo) State {
	st := stat(info)
	s := State{Type: "other", Mode: filemode.Unix(info.Mode()) & modeBits, UID: st.uid, GID: st.gid, Changed: info.ModTime()}
	switch {
	case info.Mode().IsRegular():
		s.Type = typeFile
	case info.Mode().Type() == fs.ModeSymlink:
		s.Type, s.Mode = typeSymlink, 0
	default:
		s.Value = filemode.Type(info.Mode())
	}
	return s
}

// isGone reports whether there is no object, since there is no directory for it either.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }

// inParent calls f with the directory of path. Without that, it returns an error that
// isGone.
func inParent(path string, f func(d *durable.Dir, name string) error) error {
	d, err := durable.OpenDir(filepath.Dir(path))
	if err != nil {
		return remedy.File(err)
	}
	defer d.Close()
	return f(d, filepath.Base(path))
}

// readPath describes what look finds at a path, through its open directory. A missing
// directory means that there is no object.
func readPath(path string, look func(d *durable.Dir, name string, info fs.FileInfo) (State, error)) (s State, err error) {
	var in fs.FileInfo
	err = inParent(path, func(d *durable.Dir, name string) (err error) {
		if in, err = d.Stat(); err != nil {
			return err
		}
		info, err := d.Lstat(name)
		if err == nil {
			s, err = look(d, name, info)
			if s.Value != covered {
				s.seen = cmp.Or(s.seen, info)
			}
		}
		return err
	})
	s.in = in
	if isGone(err) {
		return State{in: in}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("read %s: %w", printable.Line(path), err)
	}
	return s, nil
}

func readFile(ctx context.Context, path string) (State, error) {
	return readPath(path, func(d *durable.Dir, name string, info fs.FileInfo) (s State, err error) {
		switch s = statOf(info); s.Type {
		case typeSymlink:
			s.Value, err = d.Readlink(name)
		case typeFile:
			s, err = readRegular(ctx, d, name)
		}
		return s, err
	})
}

// readRegular reads a file that it opens only once: its attributes are those of its
// content.
func readRegular(ctx context.Context, d *durable.Dir, name string) (State, error) {
	f, err := d.Open(name)
	if err != nil {
		return State{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return State{}, err
	}
	if info.Size() > maxContent {
		return State{}, errTooLarge
	}
	s, first := statOf(info), &bytes.Buffer{}
	s.Identity, s.seen = identity(info), info
	r := io.MultiReader(io.TeeReader(io.LimitReader(f, maxInline+1), first), f)
	if l, isSet := ctx.Value(likelyKey{}).(likely); isSet && l.isContentOf(ctx, f, &s, info.Size()) {
		s.isLikely = true
	} else if _, err := f.Seek(0, io.SeekStart); err != nil {
		return s, err
	} else if err := copyContent(ctx, io.Discard, r, &s); err != nil {
		return s, err
	}
	if s.Size <= maxInline {
		s.Content = first.Bytes()
	} else {
		s.Open = func() (io.ReadCloser, error) { return openFile(d.Path(name)) }
	}
	if s.Xattrs, err = xattrs(f); err != nil {
		return s, err
	}
	return s, unchangedSince(info, f)
}

// likely is what a large file probably has as its content: it still is the file that an agent
// has left, and so it is compared with the source in a quarter of the time that hashing both
// takes.
type likely struct {
	left State
	open func() (io.ReadCloser, error)
}

type likelyKey struct{}

// likely returns a context for reading the target's object, of which r is the record.
func (t *target) likely(ctx context.Context, r *record) context.Context {
	if r == nil || t.To.Open == nil || t.To.SHA256 != "" || r.Left.Size <= maxInline {
		return ctx
	}
	return context.WithValue(ctx, likelyKey{}, likely{r.Left, t.To.Open})
}

// isContentOf reports whether f, in state s, has the source's content. Then s gets its hash.
func (l likely) isContentOf(ctx context.Context, f io.Reader, s *State, size int64) bool {
	if l.left.Identity != s.Identity || l.left.Size != size {
		return false
	}
	source, err := l.open()
	if err != nil {
		return false
	}
	defer source.Close()
	if !isEqual(input.WithContext(ctx, f), input.WithContext(ctx, source)) {
		return false
	}
	s.Size, s.SHA256 = l.left.Size, l.left.SHA256
	return true
}

// isEqual reports whether two contents are equal. What cannot be read is not.
func isEqual(a, b io.Reader) bool {
	const size = 128 << 10
	bufferA, bufferB := make([]byte, size), make([]byte, size)
	for {
		n, err := io.ReadFull(a, bufferA)
		m, errB := io.ReadFull(b, bufferB)
		if err != errB || !bytes.Equal(bufferA[:n], bufferB[:m]) {
			return false
		}
		if err != nil {
			return err == io.EOF || err == io.ErrUnexpectedEOF
		}
	}
}

// unchangedSince returns an error if a file was changed while it was read: its attributes
// may be those of another content.
func unchangedSince(before fs.FileInfo, f *os.File) error {
	now, err := f.Stat()
	if err == nil && (!now.ModTime().Equal(before.ModTime()) || now.Size() != before.Size()) {
		err = errors.New("it is being changed")
	}
	return err
}

// openFile opens the content again: it may be another by now, which its reader verifies.
func openFile(path string) (content io.ReadCloser, err error) {
	err = inParent(path, func(d *durable.Dir, name string) (err error) {
		content, err = d.Open(name)
		return err
	})
	return content, err
}

// writeFile puts the object in place whole, by a rename.
func writeFile(ctx context.Context, path string, to State) error {
	if to.Type == typeFile {
		staged, err := stageFile(ctx, path, to)
		if err != nil {
			return err
		}
		return staged.Commit(ctx)
	}
	return inParent(path, func(d *durable.Dir, name string) error {
		if err := to.isOver(d, name); err != nil {
			return err
		}
		switch to.Type {
		case "":
			return remedy.File(errors.Join(d.Sweep(), d.Remove(name)))
		case typeSymlink:
			return remedy.File(errors.Join(d.Sweep(), d.Symlink(to.Value, name)))
		}
		return fmt.Errorf("a %s cannot be made", to.Value)
	})
}

// sweepBeside removes what killed writers have left in a file's directory.
func sweepBeside(_ context.Context, path string) error {
	if err := durable.In(path, func(d *durable.Dir, _ string) error { return d.Sweep() }); !isGone(err) {
		return err
	}
	return nil
}

// isOver returns an error if the object that a write is about to make, replace or remove, in the
// open directory, is not the one that was read there: the path led to another directory then,
// which a user may have put in its place.
func (s State) isOver(d *durable.Dir, name string) error {
	if s.over == nil {
		return nil
	}
	if in, err := d.Stat(); err != nil || s.over.in != nil && !os.SameFile(s.over.in, in) {
		return cmp.Or(err, exchanged(d.Path(".")))
	}
	info, err := d.Lstat(name)
	if err != nil {
		return durable.IgnoreGone(err)
	}
	hidden, err := isCovered(d, info)
	switch {
	case err != nil || hidden: // another process has just mounted on it
		return err
	case s.over.IsZero():
		return fmt.Errorf("%w: %w", exchanged(d.Path(name)), fs.ErrExist)
	case s.over.seen != nil && !os.SameFile(s.over.seen, info):
		return exchanged(d.Path(name))
	}
	return nil
}

// Rename is a Write of [File] that makes the object by renaming another file of its directory,
// which was read in state now.
func Rename(path string, to State, from string, now State) error {
	return inParent(path, func(d *durable.Dir, name string) error {
		if err := errors.Join(State{}.onto(now).isOver(d, from), to.isOver(d, name)); err != nil {
			return err
		}
		if _, err := d.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return remedy.File(d.RenameNew(from, name))
		}
		return remedy.File(d.Rename(from, name))
	})
}

func exchanged(path string) error {
	return fmt.Errorf("%s is %w: another has taken its place just now", printable.Line(path), ErrChanged)
}

// stageFile writes a file under a temporary name, and reads its content once.
func stageFile(ctx context.Context, path string, to State) (*Staged, error) {
	d, err := durable.OpenDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	f, err := fill(ctx, d, filepath.Base(path), &to)
	if err != nil {
		return nil, errors.Join(remedy.File(err), d.Close())
	}
	discard := func() {
		f.Abort()
		_ = d.Close() // nothing is written through it
	}
	return &Staged{State: to.bare(), Path: f.Name(), Discard: discard, Commit: func(context.Context) error {
		defer discard()
		if err := to.isOver(d, filepath.Base(path)); err != nil {
			return err
		}
		return remedy.File(f.Commit())
	}}, nil
}

// fill makes a temporary file in state to. If the content's hash is not known, to gets it. What
// killed writers have left beside it is removed.
func fill(ctx context.Context, d *durable.Dir, name string, to *State) (*durable.File, error) {
	err := to.isOver(d, name)
	if err == nil {
		err = mayHaveCapabilities(*to)
	}
	if err == nil {
		err = d.Sweep()
	}
	if err != nil {
		return nil, err
	}
	content, err := to.Reader()
	if err != nil {
		return nil, err
	}
	defer content.Close()
	f, err := d.Create(name, filemode.Go(to.Mode))
	if err != nil {
		return nil, err
	}
	if err = copyInto(ctx, f.File, content, to); err == nil {
		err = setAttributes(f.File, *to)
	}
	if err == nil {
		err = f.Seal()
	}
	if err != nil {
		f.Abort()
		return nil, err
	}
	return f, nil
}

// setAttributes sets owner, mode and extended attributes, in an order in which none clears
// another.
func setAttributes(f *os.File, to State) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if st := stat(info); st.uid != to.UID || st.gid != to.GID { // else a process that may not change owners can go on
		err = f.Chown(to.UID, to.GID)
	}
	if err == nil {
		err = f.Chmod(filemode.Go(to.Mode))
	}
	if err == nil {
		err = setXattrs(f, to.Xattrs)
	}
	return err
}

// describePath returns a Describe, which says whether only the attributes change.
func describePath(create, noun string) func(path string, from, to State) string {
	return func(path string, from, to State) string {
		name := noun + " " + printable.Line(path)
		switch {
		case to.IsZero():
			return "remove " + name
		case from.IsZero():
			return create + " " + name
		case from.SHA256 == to.SHA256 && from.Type == to.Type && from.Value == to.Value:
			return fmt.Sprintf("set mode %04o and owner %d:%d of %s", to.Mode, to.UID, to.GID, name)
		}
		return "replace " + name
	}
}

// lostFile says why an original could not be made again. A device, FIFO or socket is more than
// its name: its process would have to come back, too. All iptables processes of a node lock
// one file: one that has it open would no longer exclude one that made a new file.
func lostFile(path string, original State) string {
	if original.IsZero() && strings.HasSuffix(filepath.ToSlash(path), "/run/xtables.lock") {
		return "a process may hold this lock"
	}
	if original.Type == "other" {
		return fmt.Sprintf("a %s cannot be made again", original.Value)
	}
	if err := mayHaveCapabilities(original); err != nil {
		return err.Error()
	}
	return ""
}

// mayWrite returns a Permission: it names what is in the way, and could not come back, and
// what is missing to write.
func mayWrite(fits func(fs.FileMode) bool) func(context.Context, string) error {
	return func(_ context.Context, path string) error {
		err := inParent(path, func(d *durable.Dir, name string) error {
			info, err := d.Lstat(name)
			if err == nil && !fits(info.Mode()) && info.Mode().Type() != fs.ModeSymlink {
				return fmt.Errorf("a %s is in the way: move it away", filemode.Type(info.Mode()))
			}
			return durable.IgnoreGone(err)
		})
		if err != nil && !isGone(err) {
			return err
		}
		_, err = durable.Writable(filepath.Dir(path))
		return remedy.File(err)
	}
}
