// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/filemode"
	"github.com/slipway-dev/slipway/internal/input"
)

const (
	maxInline = 4 << 10 // bytes of content in the journal itself
	maxKept   = 1 << 30 // bytes of content at all
)

// Files records and undoes files, symbolic links and directories, for actions of your
// own. [Files.Write] writes a file and [Files.MkdirAll] makes directories, each recorded
// and safe against being killed; [Files.Written] is what their Check asks. The other
// methods are for changes that take more than one call.
//
// Its entries have the kinds Kind/file and Kind/dir, so that each package has its own
// kinds, and their object is a path. Paths are resolved through open directories, and a
// symbolic link at the end is never followed. The undoing process resolves the path in
// its own mount namespace, or in the host's: see [Handler].
type Files struct {
	// Kind is the package's name, such as "acme".
	Kind string

	// May returns an error if an action of this kind cannot have written to path. If May
	// is nil, it can have written anywhere. No file below /proc, /sys and /dev is ever
	// undone.
	May func(path string) error
}

func (f Files) file() string { return f.Kind + "/file" }
func (f Files) dir() string  { return f.Kind + "/dir" }

// Namespaces lists the mount namespace.
func (f Files) Namespaces() []string { return []string{"mnt"} }

// Kinds lists Kind/file and Kind/dir.
func (f Files) Kinds() []string { return []string{f.file(), f.dir()} }

// Owns returns an error if e's object cannot be the path of a file of this kind.
func (f Files) Owns(e Entry) error {
	switch {
	case !isPath(e.Object) || e.Object == "/":
		return fmt.Errorf("%q is not an absolute, clean path below /", e.Object)
	case e.Kind == f.dir() && e.Before.Type != "":
		return errors.New("a directory that existed before is not recorded")
	}
	for _, system := range []string{"/proc", "/sys", "/dev"} {
		if e.Object == system || strings.HasPrefix(e.Object, system+"/") {
			return fmt.Errorf("it lies below %s", system)
		}
	}
	if f.May != nil {
		return f.May(e.Object)
	}
	return nil
}

// Snapshot describes the object at path now, without following a symbolic link at its
// end. It reads a file completely, to hash it.
func Snapshot(ctx context.Context, path string) (State, error) {
	d, name, err := openParent(path)
	if err != nil || d == nil {
		return State{}, err
	}
	defer d.Close()
	return snapshot(ctx, d, name, io.Discard)
}

// openParent opens the directory of path. It returns nil if that does not exist.
func openParent(path string) (d *durable.Dir, name string, err error) {
	d, err = durable.OpenDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, "", nil
	}
	return d, filepath.Base(path), err
}

func snapshot(ctx context.Context, d *durable.Dir, name string, content io.Writer) (State, error) {
	info, err := d.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	if err != nil {
		return State{}, err
	}
	s := stateOf(info)
	switch s.Type {
	case "symlink":
		s.Target, err = d.Readlink(name)
	case "dir":
		s.Xattrs, err = dirXattrs(d, name)
	case "file":
		s, err = hashFile(ctx, d, name, content)
	}
	return s, err
}

func stateOf(info fs.FileInfo) State {
	s := State{Type: "other", Mode: filemode.Unix(info.Mode())}
	s.UID, s.GID = ids(info)
	switch {
	case info.IsDir():
		s.Type = "dir"
	case info.Mode().IsRegular():
		s.Type = "file"
	case info.Mode().Type() == fs.ModeSymlink:
		s.Type, s.Mode = "symlink", 0
	}
	return s
}

// hashFile describes a file that it opens only once. Its attributes are those of its
// content: a file that is changed while it is read is an error, since it would otherwise
// record the capabilities of a program with content that was exchanged meanwhile.
func hashFile(ctx context.Context, d *durable.Dir, name string, content io.Writer) (State, error) {
	f, err := d.Open(name)
	if err != nil {
		return State{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return State{}, err
	}
	if info.Size() > maxKept {
		return State{}, fmt.Errorf("%s is larger than %d bytes, which is too much to keep: move it away", f.Name(), maxKept)
	}
	s, sum := stateOf(info), sha256.New()
	s.Size, err = io.Copy(io.MultiWriter(sum, content), io.LimitReader(input.WithContext(ctx, f), maxKept))
	if err != nil {
		return s, err
	}
	s.SHA256 = hex.EncodeToString(sum.Sum(nil))
	if s.Xattrs, err = xattrs(f); err != nil || !s.hasCapabilities() {
		return s, err
	}
	if now, err := f.Stat(); err != nil || !unchangedSince(info, now) {
		return s, cmp.Or(err, fmt.Errorf("%s is being changed", f.Name()))
	}
	return s, nil
}

// Begin begins the entry of the file or symbolic link at path, which is about to become
// after and depends on the objects in needs. The first time, it records the object now at
// path, with its content. Then make the change atomically (by a rename), and call
// Complete. Give after the intended content, as [FileState] does: if the process is killed
// before Complete, undoing recognizes the file only by that. [Files.Write] does all of
// this.
func (f Files) Begin(ctx context.Context, j *Journal, path string, after State, needs ...string) error {
	if j == nil {
		return nil
	}
	e, err := f.Entry(ctx, j, path, after, needs...)
	if err != nil {
		return err
	}
	return j.Begin(ctx, e)
}

// Entry returns the entry that Begin would begin, for callers that begin several at once
// with [Journal.Begin]. The present content at path is already stored, but the entry is
// not recorded yet.
func (f Files) Entry(ctx context.Context, j *Journal, path string, after State, needs ...string) (Entry, error) {
	d, err := durable.OpenDir(filepath.Dir(path))
	if err != nil {
		return Entry{}, fmt.Errorf("record %s: %w", path, err)
	}
	defer d.Close()
	e, _, err := f.entry(ctx, j, d, Entry{Kind: f.file(), Object: path, After: after, Needs: needs}, j.keep)
	return e, err
}

// entry completes e, whose object is in d, with the present object as stored by keep,
// unless the entry is known already.
func (f Files) entry(ctx context.Context, j *Journal, d *durable.Dir, e Entry, keep func(context.Context, *durable.Dir, string) (State, error)) (Entry, bool, error) {
	var err error
	if e.Boot, err = j.bootOf(d); err != nil {
		return Entry{}, false, fmt.Errorf("record %s: %w", e.Object, err)
	}
	old, known, err := j.Lookup(ctx, e.Kind, e.Object)
	if err == nil && known && !old.Done {
		known, err = f.settle(ctx, j, old)
	}
	keeps := !known
	if err == nil && known {
		keeps, err = j.overrides(old, e)
	}
	if err != nil || !keeps {
		return e, known, err
	}
	name := filepath.Base(e.Object)
	if err = replaceable(d, name, e.After); err == nil {
		e.Before, err = keep(ctx, d, name)
	}
	if err == nil {
		err = e.Before.mayComeBack()
	}
	if err != nil {
		return Entry{}, false, fmt.Errorf("record %s: %w", e.Object, err)
	}
	return e, known, nil
}

// replaceable returns an error if the present object could not be restored once another
// has replaced it. An object that is moved away, so that its path is empty afterwards, is
// replaceable.
func replaceable(d *durable.Dir, name string, after State) error {
	info, err := d.Lstat(name)
	if err != nil || after.Type == "" || info.Mode().IsRegular() || info.Mode().Type() == fs.ModeSymlink {
		return nil // keep returns the error
	}
	return fmt.Errorf("it is a %s, which could not be brought back: move it away", filemode.Type(info.Mode()))
}

// settle handles an entry that a run began but did not complete, before it is begun
// again. If that run did make the change, settle completes the entry. If the object never
// was ours and another program has changed it since, settle drops the entry and reports
// it as not known: the present object is the original.
func (f Files) settle(ctx context.Context, j *Journal, e Entry) (known bool, err error) {
	now, err := Snapshot(ctx, e.Object)
	switch {
	case err != nil:
		return true, fmt.Errorf("record %s: %w", e.Object, err)
	case now.Same(e.Before), e.Over != nil && now.Same(*e.Over): // the run has not changed it
		return true, nil
	case e.MatchesAfter(now):
		e.After = now
		return true, j.Complete(ctx, e)
	case e.Was == nil:
		return false, j.Forget(ctx, e)
	}
	return true, nil
}

// bootOf returns the boot with which the content of d ends, for [Entry].Boot, or "" if
// the content outlives reboots.
func (j *Journal) bootOf(d *durable.Dir) (string, error) {
	volatile, err := d.InMemory()
	if err != nil || !volatile {
		return "", err
	}
	return j.Boot(), nil
}

// Complete records the state in which the step left the file at path. If its type or
// content is not the intended one, another program has written the file since. Complete
// then records the intended state, so that the other program's file is not taken for ours.
func (f Files) Complete(ctx context.Context, j *Journal, path string) error {
	if j == nil {
		return nil
	}
	return f.complete(ctx, j, f.file(), path)
}

func (f Files) complete(ctx context.Context, j *Journal, kind, path string) error {
	after, err := Snapshot(ctx, path)
	if err != nil {
		return fmt.Errorf("record %s: %w", path, err)
	}
	e, _, err := j.Lookup(ctx, kind, path)
	if err != nil {
		return err
	}
	if meant := e.After; meant.Type != after.Type || meant.Target != after.Target || meant.SHA256 != "" && meant.SHA256 != after.SHA256 {
		after = meant
	}
	return j.Complete(ctx, Entry{Kind: kind, Object: path, After: after})
}

// Make creates and records the file at path, which is to become after: create makes the
// file, and reports whether it did. If another program has made the file first, the file
// belongs to that program and is not recorded.
func (f Files) Make(ctx context.Context, j *Journal, path string, after State, create func() (made bool, err error)) error {
	return f.make(ctx, j, f.file(), path, after, create)
}

func (f Files) make(ctx context.Context, j *Journal, kind, path string, after State, create func() (bool, error)) error {
	if j == nil {
		_, err := create()
		return err
	}
	d, err := durable.OpenDir(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("record %s: %w", path, err)
	}
	defer d.Close()
	e := Entry{Kind: kind, Object: path, After: after}
	if e.Boot, err = j.bootOf(d); err != nil {
		return fmt.Errorf("record %s: %w", path, err)
	}
	old, known, err := j.Lookup(ctx, kind, path)
	if err != nil {
		return err
	}
	if err := j.Begin(ctx, e); err != nil {
		return err
	}
	made, err := create()
	switch {
	case made:
	case known && old.Done: // by an earlier run
		return errors.Join(err, j.Complete(ctx, old))
	case known:
		return err
	default:
		return errors.Join(err, j.Forget(ctx, e))
	}
	return errors.Join(err, f.complete(ctx, j, kind, path))
}

// mayRecord returns an error if undoing would refuse the path, so that nothing is made
// there.
func (f Files) mayRecord(j *Journal, path string) error {
	if j == nil || f.May == nil {
		return nil
	}
	return f.May(path)
}

// MkdirAll makes path and the missing directories above it, durably. Each gets this
// mode, whatever the umask, and an entry of its own, so [Files].May has to accept each.
func (f Files) MkdirAll(ctx context.Context, j *Journal, path string, mode fs.FileMode) error {
	path = filepath.Clean(path)
	d, err := durable.OpenDir(path)
	if err == nil {
		return d.Close()
	}
	parent := filepath.Dir(path)
	if !errors.Is(err, fs.ErrNotExist) || parent == path {
		return err
	}
	if err := cmp.Or(ctx.Err(), f.mayRecord(j, path)); err != nil {
		return fmt.Errorf("make directory %s: %w", path, err)
	}
	if err := f.MkdirAll(ctx, j, parent, mode); err != nil {
		return err
	}
	after := State{Type: "dir", Mode: filemode.Unix(mode), UID: os.Geteuid(), GID: os.Getegid()}
	return f.make(ctx, j, f.dir(), path, after, func() (bool, error) { return makeDir(path, mode) })
}

// makeDir makes a directory, unless one exists by now.
func makeDir(path string, mode fs.FileMode) (made bool, err error) {
	d, err := durable.OpenDir(filepath.Dir(path))
	if err != nil {
		return false, err
	}
	defer d.Close()
	err = d.Mkdir(filepath.Base(path), mode)
	if !errors.Is(err, fs.ErrExist) {
		return err == nil, err
	}
	there, err := durable.OpenDir(path) // it may be a link that leads nowhere
	if err != nil {
		return false, err
	}
	return false, there.Close()
}

// keep takes a snapshot of name and stores its content, in the state itself if that
// is small.
func (j *Journal) keep(ctx context.Context, d *durable.Dir, name string) (State, error) {
	info, err := d.Lstat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return State{}, err
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() <= maxInline {
		var content bytes.Buffer
		s, err := snapshot(ctx, d, name, &limited{&content})
		if err != nil || s.Size <= maxInline {
			s.Content = content.Bytes()
			return s, err
		}
	}
	if err := j.roomFor(info.Size()); err != nil {
		return State{}, err
	}
	return j.Keep(ctx, func(w io.Writer) (State, error) {
		s, err := snapshot(ctx, d, name, w)
		if err == nil && s.Type != "file" {
			err = fmt.Errorf("%s is being changed", d.Path(name))
		}
		return s, err
	})
}

// limited buffers no more than fits into an entry.
type limited struct{ *bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len() <= maxInline {
		l.Buffer.Write(p[:min(len(p), maxInline+1)])
	}
	return len(p), nil
}

// Keep stores content that is too large for the journal's own file in a file next
// to it, which is removed together with the entry that has the returned state. The
// function write writes the content, and returns the state that describes it, with
// its SHA256.
func (j *Journal) Keep(ctx context.Context, write func(io.Writer) (State, error)) (State, error) {
	if j == nil {
		return State{}, errNoJournal
	}
	if err := j.roomFor(0); err != nil {
		return State{}, err
	}
	d, _, err := j.makeDir()
	if err != nil {
		return State{}, err
	}
	defer d.Close()
	blob, err := d.Create(blobPrefix+"new", 0o600)
	if err != nil {
		return State{}, err
	}
	defer blob.Abort()
	w := &counted{w: blob}
	s, err := write(w)
	if err == nil {
		err = j.roomFor(w.n)
	}
	if err != nil {
		return State{}, err
	}
	s.Content, s.Blob = nil, blobPrefix+s.SHA256
	if !isBlob(s.Blob) {
		return State{}, fmt.Errorf("keep content: %q is not its SHA-256 in hex", s.SHA256)
	}
	j.mu.Lock()
	if j.fresh == nil {
		j.fresh = map[string]int64{}
	}
	j.fresh[s.Blob] = w.n
	j.mu.Unlock()
	return s, blob.CommitAs(s.Blob)
}

// counted counts the bytes written, and writes no more than may be kept.
type counted struct {
	w io.Writer
	n int64
}

func (c *counted) Write(p []byte) (int, error) {
	if c.n+int64(len(p)) > min(maxKept, bound.kept) {
		return 0, fmt.Errorf("it is larger than %d bytes, which is too much to keep: move it away", min(maxKept, bound.kept))
	}
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// roomFor returns an error if content of this size is more than may be kept.
func (j *Journal) roomFor(size int64) error {
	if j == nil {
		return errNoJournal
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	l, err := j.current()
	if err != nil {
		return err
	}
	n, sum := len(l.entries.content)+len(j.fresh), l.entries.kept+size
	for _, fresh := range j.fresh {
		sum += fresh
	}
	switch {
	case n >= bound.blobs:
		return fmt.Errorf("%s: the content of %d files is kept, and %d is the limit: first undo entries that are no longer wanted", j.dir, n, bound.blobs)
	case sum > bound.kept:
		return fmt.Errorf("%s: it would keep %d bytes of content, and %d is the limit: first undo entries that are no longer wanted, or move large files away", j.dir, sum, bound.kept)
	}
	return nil
}

// Content opens the content that is stored for a state. The caller must compare its hash,
// and close it.
func (j *Journal) Content(s State) (io.ReadCloser, error) {
	if s.Blob == "" {
		return io.NopCloser(bytes.NewReader(s.Content)), nil
	}
	if j == nil {
		return nil, errNoJournal
	}
	d, err := j.openDir()
	if err == nil && d == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("kept content: %w", err)
	}
	defer d.Close()
	if err := trusted(d.Path(s.Blob), func() (fs.FileInfo, error) { return d.Lstat(s.Blob) }); err != nil {
		return nil, fmt.Errorf("kept content: %w", err)
	}
	f, err := d.Open(s.Blob)
	if err != nil {
		return nil, fmt.Errorf("kept content: %w", err)
	}
	return f, nil
}

// Look returns how to restore the file or directory of e. It does not touch an object
// that is no longer as the step left it, and removes a directory only if it is empty by
// then. It also removes temporary files that a killed apply or undo has left next to the
// file.
func (f Files) Look(ctx context.Context, p *Pass, e Entry) (Undo, error) {
	if e.Kind == f.dir() {
		return f.lookDir(ctx, p, e)
	}
	there, err := e.compare(ctx)
	if err != nil {
		return Undo{}, err
	}
	var u Undo
	goes := e.Before.Type == "" || e.Before.Secret
	if there {
		u.Change, u.Run = "restore "+e.Object, func(ctx context.Context) error { return f.undo(ctx, p.journal, e) }
		if goes {
			u.Change, u.Removes = "remove file "+e.Object, spellings(e.Object)
		}
		if e.Before.Secret {
			u.Change += ": what it replaced was not kept, as asked"
		}
	}
	if e.Done && (!there || goes) {
		return u, nil // no program has written beside it since it was done
	}
	return sweeping(filepath.Dir(e.Object), u)
}

// sweeping returns u, extended so that it first removes leftovers of killed writers in dir.
func sweeping(dir string, u Undo) (Undo, error) {
	d, err := durable.OpenDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return u, nil
	}
	if err != nil {
		return Undo{}, fmt.Errorf("look at %s: %w", dir, err)
	}
	defer d.Close()
	found := false
	for name, err := range d.All() {
		if err != nil {
			return Undo{}, fmt.Errorf("look at %s: %w", dir, err)
		}
		if found = durable.IsTemporary(name); found {
			break
		}
	}
	if !found {
		return u, nil
	}
	undo := u.Run
	u.Change = cmp.Or(u.Change, "remove what a killed run has left in "+dir)
	u.Run = func(ctx context.Context) error {
		err := durable.Sweep(dir)
		if undo != nil {
			err = errors.Join(err, undo(ctx))
		}
		return err
	}
	return u, nil
}

// compare reports whether the object is as the step left it. If it returns false without
// an error, the object is as it was before the step. In any other state the error matches
// ErrChanged.
func (e Entry) compare(ctx context.Context) (bool, error) {
	d, name, err := openParent(e.Object)
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", e.Object, err)
	}
	if d == nil {
		return e.changed(State{})
	}
	defer d.Close()
	return e.compareIn(ctx, d, name)
}

// compareIn is compare of name in d.
func (e Entry) compareIn(ctx context.Context, d *durable.Dir, name string) (bool, error) {
	now, err := e.snapshotIn(ctx, d, name)
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", e.Object, err)
	}
	return e.changed(now)
}

// changed is compare with the present state now.
func (e Entry) changed(now State) (bool, error) {
	switch {
	case now.Same(e.Before), e.Before.Secret && now.Type == "":
		return false, nil
	case !e.MatchesAfter(now):
		return false, fmt.Errorf("%s is %w, so it is kept", e.Object, ErrChanged)
	}
	return true, nil
}

// snapshotIn is [Snapshot] of e's object, but does not read a file whose size alone
// shows that e does not know its content: it may be huge.
func (e Entry) snapshotIn(ctx context.Context, d *durable.Dir, name string) (State, error) {
	info, err := d.Lstat(name)
	if err == nil && info.Mode().IsRegular() && !e.knowsSize(info.Size()) {
		s := stateOf(info)
		s.Size = info.Size()
		return s, nil
	}
	return snapshot(ctx, d, name, io.Discard)
}

func (e Entry) knowsSize(size int64) bool {
	return !e.Any && e.After.sizeless() || e.Before.Size == size || e.After.Size == size || e.Was != nil && e.Was.Size == size ||
		slices.ContainsFunc(e.also, func(s State) bool { return s.Size == size })
}

// undo looks and acts in one open directory: by the time it acts, the path could
// lead to another.
func (f Files) undo(ctx context.Context, j *Journal, e Entry) error {
	d, name, err := openParent(e.Object)
	if err != nil {
		return fmt.Errorf("undo %s: %w", e.Object, err)
	}
	if d == nil { // it has gone, with its content
		there, err := e.changed(State{})
		if there {
			err = fmt.Errorf("undo %s: its directory: %w", e.Object, fs.ErrNotExist)
		}
		return err
	}
	defer d.Close()
	there, err := e.compareIn(ctx, d, name)
	if err != nil || !there {
		return err
	}
	if err := j.restore(ctx, d, name, e.Before); err != nil {
		return fmt.Errorf("undo %s: %w", e.Object, err)
	}
	return nil
}

func (j *Journal) restore(ctx context.Context, d *durable.Dir, name string, was State) error {
	switch {
	case was.Type == "" || was.Secret:
		return d.Remove(name)
	case was.Type == "symlink":
		return d.Symlink(was.Target, name)
	case was.Type == "file":
		return j.restoreContent(ctx, d, name, was)
	}
	return fmt.Errorf("a %s cannot be brought back", was.Type)
}

// restoreContent restores a file, but not its set-user-id and set-group-id bits: a
// journal must not bring back a program with them.
func (j *Journal) restoreContent(ctx context.Context, d *durable.Dir, name string, was State) error {
	content, err := j.Content(was)
	if err != nil {
		return err
	}
	defer content.Close()
	if err := was.mayComeBack(); err != nil {
		return err
	}
	mode := filemode.Go(was.Mode) &^ (fs.ModeSetuid | fs.ModeSetgid)
	f, err := d.Create(name, mode)
	if err != nil {
		return err
	}
	defer f.Abort()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(f.File, sum), input.WithContext(ctx, content)); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != was.SHA256 {
		return fmt.Errorf("kept content is damaged: its SHA-256 is %s, not %s", got, was.SHA256)
	}
	if err := chown(f.File, was); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil { // chown clears bits
		return err
	}
	if err := setXattrs(f.File, was.Xattrs); err != nil { // chown removes capabilities
		return err
	}
	return f.Commit()
}

// lookDir returns how to remove the directory of e, unless it holds objects of others.
func (f Files) lookDir(ctx context.Context, p *Pass, e Entry) (Undo, error) {
	u := Undo{
		Change: "remove directory " + e.Object, Removes: spellings(e.Object),
		Run: func(ctx context.Context) error { return f.removeDir(ctx, p, e) },
	}
	switch {
	case p.WillRemove(e.Object): // a mount that this pass removes covers it
		return u, nil
	case p.WillKeep(e.Object): // a mount that stays covers it
		return Undo{}, errBelow
	}
	there, err := e.compare(ctx)
	if err != nil || !there {
		return Undo{}, err
	}
	d, err := durable.OpenDir(e.Object)
	if err != nil {
		return Undo{}, fmt.Errorf("look at %s: %w", e.Object, err)
	}
	defer d.Close()
	if err := holdsOthers(p, d, e.Object); err != nil {
		return Undo{}, err
	}
	return u, nil
}

// removeDir removes a directory, if it is empty but for temporary files.
func (f Files) removeDir(ctx context.Context, p *Pass, e Entry) error {
	if p.WillKeep(e.Object) { // the mount on it
		return errBelow
	}
	above, name, err := openParent(e.Object)
	if err != nil || above == nil { // nil: it has gone
		return err
	}
	defer above.Close()
	there, err := e.compareIn(ctx, above, name)
	if err != nil || !there {
		return err
	}
	d, err := above.OpenDir(name)
	if err != nil {
		return fmt.Errorf("undo %s: %w", e.Object, err)
	}
	defer d.Close()
	if err := holdsOthers(p, d, e.Object); err != nil {
		return err
	}
	if err := d.Sweep(); err != nil {
		return fmt.Errorf("undo %s: %w", e.Object, err)
	}
	err = above.Remove(name)
	if errors.Is(err, syscall.EBUSY) {
		return fmt.Errorf("%s is %w: something is mounted on it, so it is kept", e.Object, ErrChanged)
	}
	if errors.Is(err, syscall.ENOTEMPTY) { // such as a mount point of another owner whose mount has gone
		return heldBy(d, e.Object, err)
	}
	return err
}

// heldBy names the content of the directory d at dir, which could not be removed.
func heldBy(d *durable.Dir, dir string, err error) error {
	for name, errList := range d.All() {
		if errList != nil {
			break
		}
		return notEmpty{dir, name}
	}
	return err
}

// holdsOthers returns an error if the directory d at dir contains anything that this pass
// does not remove. Temporary files do not count: d.Sweep removes those of dead writers.
func holdsOthers(p *Pass, d *durable.Dir, dir string) error {
	paths, other, stays := spellings(filepath.Join(dir, "name")), "", false
	for name, err := range d.All() {
		if err != nil {
			return fmt.Errorf("look at %s: %w", dir, err)
		}
		for i, path := range paths {
			paths[i] = filepath.Join(filepath.Dir(path), name)
		}
		switch {
		case durable.IsTemporary(name), slices.ContainsFunc(paths, p.WillRemove):
		case slices.ContainsFunc(paths, p.WillKeep):
			stays = true
		case other == "" || name < other:
			other = name
		}
	}
	if other != "" {
		return notEmpty{dir, other}
	}
	if stays {
		return errBelow
	}
	return nil
}

// notEmpty is the error for a directory that holds files of others. The directory stays
// recorded as ours, and so do the directories above it.
type notEmpty struct{ dir, other string }

func (e notEmpty) Error() string {
	return fmt.Sprintf("directory %s is kept: it holds %s (once that is gone, undoing removes the directory)", e.dir, e.other)
}

func (notEmpty) Is(target error) bool { return target == ErrChanged || target == ErrKept }
func (notEmpty) Code() string         { return code.LedgerChanged }

// spellings returns path and, if that leads through symbolic links, its name without them:
// two steps may have recorded the same file under different names.
func spellings(path string) []string {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if real := filepath.Join(dir, filepath.Base(path)); err == nil && real != path {
		return []string{path, real}
	}
	return []string{path}
}
