// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package record

import (
	"bytes"
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

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/filemode"
)

// Snapshot describes what is at path now, without following a symbolic link.
// It reads a file whole to hash it and keeps no content.
func Snapshot(path string) (State, error) { return snapshot(path, io.Discard) }

func snapshot(path string, content io.Writer) (State, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	if err != nil {
		return State{}, err
	}
	s := State{Type: "other", Mode: filemode.Unix(info.Mode())}
	s.UID, s.GID = owner(info)
	switch {
	case info.IsDir():
		s.Type = "dir"
	case info.Mode().Type() == fs.ModeSymlink:
		s.Type, s.Mode = "symlink", 0
		s.Target, err = os.Readlink(path)
	case info.Mode().IsRegular():
		s.Type = "file"
		s.SHA256, s.Size, err = hashFile(path, content)
	}
	return s, err
}

func hashFile(path string, content io.Writer) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	if size, err = io.Copy(io.MultiWriter(h, content), f); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

// BeginFile begins the entry of the file at path, which shall become after.
// The first time, what is there now is kept with its content.
func (b *Book) BeginFile(path string, after State) error {
	boot, err := BootOf(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("record %s: %w", path, err)
	}
	e := Entry{Kind: KindFile, Object: path, After: after, Boot: boot}
	if old, known := b.Lookup(path); !known || old.Boot != boot {
		if e.Before, err = b.keep(path); err != nil {
			return fmt.Errorf("record %s: %w", path, err)
		}
	}
	return b.Begin(e)
}

// CompleteFile notes how the file at path was left. If its content is not what
// it was meant to become, somebody else has written it since: then what was
// meant is noted, so that theirs is not taken for ours.
func (b *Book) CompleteFile(path string) error {
	after, err := Snapshot(path)
	if err != nil {
		return fmt.Errorf("record %s: %w", path, err)
	}
	if e, _ := b.Lookup(path); e.After.SHA256 != "" && e.After.SHA256 != after.SHA256 {
		after = e.After
	}
	return b.Complete(Entry{Object: path, After: after})
}

// keep takes a snapshot of path and stores its content, in the state itself
// if it is small.
func (b *Book) keep(path string) (State, error) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return Snapshot(path)
	}
	if info.Size() <= MaxInline {
		var content bytes.Buffer
		s, err := snapshot(path, &content)
		if s.Content = content.Bytes(); content.Len() <= MaxInline {
			return s, err
		}
	}
	if err := b.makeDir(); err != nil {
		return State{}, err
	}
	blob, err := durable.Create(filepath.Join(b.dir, b.blobPrefix()+"new"), 0o600)
	if err != nil {
		return State{}, err
	}
	defer blob.Abort()
	s, err := snapshot(path, blob)
	if err != nil {
		return State{}, err
	}
	s.Blob = b.blobPrefix() + s.SHA256
	return s, blob.CommitAs(s.Blob)
}

func (b *Book) blobPrefix() string { return b.name + ".blob." }

// sweepBlobs removes kept content that no entry names.
func (b *Book) sweepBlobs() error {
	names, err := os.ReadDir(b.dir)
	if err != nil {
		return fmt.Errorf("list the state directory: %w", err)
	}
	var errs []error
	for _, n := range names {
		if !strings.HasPrefix(n.Name(), b.blobPrefix()) ||
			slices.ContainsFunc(b.page.Entries, func(e Entry) bool { return e.Before.Blob == n.Name() }) {
			continue
		}
		errs = append(errs, durable.Remove(filepath.Join(b.dir, n.Name())))
	}
	return errors.Join(errs...)
}

// MkdirAll makes path and the directories above it that are missing, each
// with mode and an entry of its own.
func (b *Book) MkdirAll(path string, mode fs.FileMode) error {
	path = filepath.Clean(path)
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%s is a %s, not a directory", path, filemode.Type(info.Mode()))
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := b.MkdirAll(filepath.Dir(path), mode); err != nil {
		return err
	}
	after := State{Type: "dir", Mode: filemode.Unix(mode), UID: os.Geteuid(), GID: os.Getegid()}
	return b.Make(KindDir, path, after, func() (bool, error) { return makeDir(path, mode) })
}

// makeDir makes a directory, unless something is there by now.
func makeDir(path string, mode fs.FileMode) (made bool, err error) {
	err = os.Mkdir(path, mode)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := os.Chmod(path, mode); err != nil { // the umask may have taken bits away
		return true, err
	}
	return true, durable.SyncDir(filepath.Dir(path))
}

// Make records the making of a file or directory that is missing: create
// makes it and reports whether it did. What somebody else was faster to make
// is theirs, and not recorded.
func (b *Book) Make(kind, path string, after State, create func() (made bool, err error)) error {
	boot, err := BootOf(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("record %s: %w", path, err)
	}
	if err := b.Begin(Entry{Kind: kind, Object: path, After: after, Boot: boot}); err != nil {
		return err
	}
	made, err := create()
	if !made {
		return errors.Join(err, b.Forget(path))
	}
	return errors.Join(err, b.CompleteFile(path))
}

// UndoFile puts the file or directory of e back to what it was before. It
// touches nothing that is not as e says it was left: that is [ErrChanged].
// A directory goes only if it is empty. What a reboot took away is undone.
func (b *Book) UndoFile(e Entry) error {
	if outlived, err := e.Outlived(); err != nil || outlived {
		return err
	}
	now, err := Snapshot(e.Object)
	switch {
	case err != nil:
		return fmt.Errorf("undo %s: %w", e.Object, err)
	case now.Same(e.Before):
		return nil
	case !e.Left(now):
		return fmt.Errorf("%s is %w, and stays", e.Object, ErrChanged)
	}
	if err := b.restore(e); err != nil {
		return fmt.Errorf("undo %s: %w", e.Object, err)
	}
	return nil
}

func (b *Book) restore(e Entry) error {
	was := e.Before
	switch was.Type {
	case "":
		if e.After.Type == "dir" {
			return b.removeEmpty(e.Object)
		}
		return durable.Remove(e.Object)
	case "symlink":
		return durable.Symlink(was.Target, e.Object)
	case "file":
		return b.restoreContent(e.Object, was)
	}
	return fmt.Errorf("cannot bring back a %s", was.Type)
}

// removeEmpty removes a directory. One that holds something is ours still, and
// may be empty another time; one that something is mounted on is in use by
// somebody else.
func (b *Book) removeEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if _, ours := b.Lookup(filepath.Join(dir, entry.Name())); !ours {
			return fmt.Errorf("it holds %s, so it stays", entry.Name())
		}
	}
	if len(entries) > 0 {
		return errBelow
	}
	err = durable.Remove(dir)
	if errors.Is(err, syscall.EBUSY) {
		return fmt.Errorf("something is mounted on it: it is %w, and stays", ErrChanged)
	}
	return err
}

// WouldUndo says in one line what UndoFile would do about e, or nothing. A
// directory is empty for it if all that it holds is in going, to which what
// would be removed is added: entries are asked for newest first.
func (b *Book) WouldUndo(e Entry, going map[string]bool) (string, error) {
	if outlived, err := e.Outlived(); err != nil || outlived {
		return "", err
	}
	now, err := Snapshot(e.Object)
	switch {
	case err != nil:
		return "", fmt.Errorf("look at %s: %w", e.Object, err)
	case now.Same(e.Before) || !e.Left(now):
		return "", nil
	case e.Before.Type != "":
		return "restore " + e.Object, nil
	case e.Kind != KindDir:
		going[e.Object] = true
		return "remove file " + e.Object, nil
	}
	entries, err := os.ReadDir(e.Object)
	if err != nil || slices.ContainsFunc(entries, func(d os.DirEntry) bool { return !going[filepath.Join(e.Object, d.Name())] }) {
		return "", err
	}
	going[e.Object] = true
	return "remove directory " + e.Object, nil
}

func (b *Book) restoreContent(path string, was State) error {
	content := io.Reader(bytes.NewReader(was.Content))
	if was.Blob != "" {
		blob, err := os.Open(filepath.Join(b.dir, was.Blob))
		if err != nil {
			return fmt.Errorf("kept content: %w", err)
		}
		defer blob.Close()
		content = blob
	}
	f, err := durable.Create(path, filemode.Go(was.Mode))
	if err != nil {
		return err
	}
	defer f.Abort()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(f, sum), content); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != was.SHA256 {
		return fmt.Errorf("kept content is damaged: its SHA-256 is %s, not %s", got, was.SHA256)
	}
	if err := chown(f.File, was); err != nil {
		return err
	}
	if err := f.Chmod(filemode.Go(was.Mode)); err != nil { // chown takes setuid away
		return err
	}
	return f.Commit()
}
