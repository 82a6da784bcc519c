// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/filemode"
)

// File is a file to be written by [Files.Write].
type File struct {
	Content []byte

	// Mode has the permission bits, whatever the umask. Zero: 0600.
	Mode fs.FileMode

	// UID and GID own the file. Zero: those of the process, which for root are 0 too.
	UID, GID int

	// Secret means that the content is a credential, and so is the content that it
	// replaces: the journal keeps only their SHA-256. So undoing cannot restore the
	// original, and removes the file. Content that the journal kept before Secret was set
	// stays there until it is undone.
	Secret bool

	// Any means that other programs rewrite the file: see [Entry].Any. Once written, it
	// is as wanted whatever its content, until another File is wanted.
	Any bool

	// Needs lists objects that this one depends on: see [Entry].Needs.
	Needs []string
}

// state is the intended state of the file.
func (f File) state() State {
	s := FileState(f.Content, cmp.Or(f.Mode, 0o600))
	s.UID, s.GID = cmp.Or(f.UID, s.UID), cmp.Or(f.GID, s.GID)
	return s
}

func (f File) validate() error {
	switch {
	case f.Mode&^fs.ModePerm != 0:
		return fmt.Errorf("its mode %v has more than permission bits", f.Mode)
	case f.UID < 0 || f.GID < 0:
		return fmt.Errorf("its owner %d:%d is invalid", f.UID, f.GID)
	}
	return nil
}

// Written reports whether the file at path is as Write leaves it, so that Write has
// nothing to do. It is for the Check of an action. An object that Write would not
// replace, such as a directory, is an error.
func (f Files) Written(ctx context.Context, j *Journal, path string, file File) (bool, error) {
	if err := file.validate(); err != nil {
		return false, fmt.Errorf("look at %s: %w", path, err)
	}
	d, name, err := openParent(path)
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", path, err)
	}
	if d == nil {
		return false, ctx.Err()
	}
	defer d.Close()
	old, known, err := j.Lookup(ctx, f.file(), path)
	if err != nil {
		return false, err
	}
	is, err := file.isAt(ctx, d, name, old, known)
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", path, err)
	}
	return is, nil
}

// Wish returns the wish of a step that writes file to path: for [Journal.CheckWishes] and
// [Journal.Wish]. It is met if Written reports true.
func (f Files) Wish(path string, file File, met bool) Wish {
	return Wish{Entry: Entry{Kind: f.file(), Object: path, After: file.state(), Any: file.Any}, Met: met, Adoptable: true, Claim: !file.Any}
}

// isAt is Written in an open directory; old is the recorded entry of the file. A file of
// another size is not read.
func (f File) isAt(ctx context.Context, d *durable.Dir, name string, old Entry, known bool) (bool, error) {
	want := f.state()
	info, err := d.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, ctx.Err()
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		return false, replaceable(d, name, want)
	case f.Any && known && old.Any && old.Done && old.After.Same(want):
		return true, ctx.Err()
	case known && old.Done && old.Any != f.Any: // the recorded state is to change
		return false, ctx.Err()
	case info.Size() != want.Size:
		return false, ctx.Err()
	}
	now, err := snapshot(ctx, d, name, io.Discard)
	return now.Same(want), err
}

// Write makes the file at path equal to file, in an existing directory, so that undoing
// restores the original: it is the only call that makes a change. To share the file with
// other agents, an action also calls [Journal.CheckWishes] and [Journal.Wish]. It records
// the present object first, then replaces it atomically and durably; a symbolic link is
// replaced, not followed. If the process is killed at any point, it leaves the old file
// or the new one, and a journal that knows which. A file that is already equal is neither
// written nor recorded. Without a journal, the file is written, and nothing is recorded.
func (f Files) Write(ctx context.Context, j *Journal, path string, file File) error {
	if err := cmp.Or(file.validate(), f.mayRecord(j, path)); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	d, err := durable.OpenDir(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer d.Close()
	old, known, err := j.Lookup(ctx, f.file(), path)
	if err != nil {
		return err
	}
	name := filepath.Base(path)
	is, err := file.isAt(ctx, d, name, old, known)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if is && (!known || old.Done) {
		return nil
	}
	return f.recorded(ctx, j, d, path, file, func() error {
		if is { // by a run that was killed before it completed the entry
			return nil
		}
		if err := file.publish(d, name); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		return nil
	})
}

// recorded calls publish between the begin and the completion of the entry. The entry of a
// file that could not be written is dropped, if there was none before.
func (f Files) recorded(ctx context.Context, j *Journal, d *durable.Dir, path string, file File, publish func() error) error {
	if j == nil {
		return publish()
	}
	e := Entry{Kind: f.file(), Object: path, After: file.state(), Any: file.Any, Needs: file.Needs}
	keep := j.keep
	if file.Secret {
		keep = withoutContent
	}
	e, known, err := f.entry(ctx, j, d, e, keep)
	if err != nil {
		return err
	}
	if err := j.Begin(ctx, e); err != nil {
		return err
	}
	if err := publish(); err != nil {
		now, lookErr := snapshot(ctx, d, filepath.Base(path), io.Discard)
		if lookErr == nil && !known && now.Same(e.Before) {
			err = errors.Join(err, j.Forget(ctx, e))
		}
		return err
	}
	return f.Complete(ctx, j, path)
}

// withoutContent takes a snapshot of name, whose content is a secret.
func withoutContent(ctx context.Context, d *durable.Dir, name string) (State, error) {
	s, err := snapshot(ctx, d, name, io.Discard)
	s.Secret = s.Size > 0
	return s, err
}

// publish puts the file in its place, over a file or a link. Leftovers of killed writers
// beside it are removed first.
func (f File) publish(d *durable.Dir, name string) error {
	if err := d.Sweep(); err != nil {
		return err
	}
	want := f.state()
	mode := filemode.Go(want.Mode)
	temporary, err := d.Create(name, mode)
	if err != nil {
		return err
	}
	defer temporary.Abort()
	if _, err := temporary.Write(f.Content); err != nil {
		return err
	}
	if err := own(temporary.File, want); err != nil {
		return err
	}
	if err := temporary.Chmod(mode); err != nil { // chown may clear bits
		return err
	}
	return temporary.Commit()
}
