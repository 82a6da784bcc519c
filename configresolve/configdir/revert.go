// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/configkey"
	"github.com/slipway-dev/slipway/internal/durable"
)

// Handler undoes what a [Dir] has recorded.
//
// It restores the previous layout, whoever wrote it, by the same swap: its keys,
// values, modes and owners. Only the data directory may get another name, if its
// own has an unknown form or is taken. Data directories that ..data did not show
// are not restored. A file that was in the place of a key is restored, and the
// directories that Apply made are removed if nothing else is in them.
//
// A configuration that is no longer the one that Apply wrote is not touched, but
// reported, and remains recorded as kept; the same goes for whatever has replaced a
// key's link since. What Apply wrote to a file system in memory (tmpfs) is gone
// after a reboot: what is there now is somebody else's, and is not touched. If
// undoing is killed at any point, it can be repeated.
type Handler struct {
	step func(string) // called with a description before each change; may be nil
}

// Kinds lists the kinds of entries of a configuration.
func (Handler) Kinds() []string { return append(files.Kinds(), kindLayout) }

// Owns returns an error if e's object cannot be part of a configuration.
func (Handler) Owns(e journal.Entry) error {
	name := filepath.Base(e.Object)
	if e.Kind == kindLayout && name != dataLink {
		return fmt.Errorf("%q is not the link %s", e.Object, dataLink)
	}
	if e.Kind == kindKey {
		if err := configkey.Check(name); err != nil {
			return fmt.Errorf("the key %q %w", name, err)
		}
	}
	return files.Owns(e)
}

// Look says what there is to undo about e.
func (h Handler) Look(ctx context.Context, p *journal.Pass, e journal.Entry) (journal.Undo, error) {
	if e.Kind != kindLayout {
		return files.Look(ctx, p, e)
	}
	d, err := openLayout(e)
	if err != nil || d == nil {
		return journal.Undo{}, revertHint(e, err)
	}
	defer d.Close()
	r, err := compareLayout(ctx, p.Journal(), e, d)
	if err != nil {
		return journal.Undo{}, revertHint(e, err)
	}
	u := journal.Undo{Leaves: revertHint(e, errors.Join(r.taken...))}
	if !r.done() {
		u.Change, u.Removes = r.change(), r.goes()
		u.Run = func(ctx context.Context) error { return revertHint(e, h.undo(ctx, p.Journal(), e)) }
	}
	return u, nil
}

// openLayout opens the directory of e, and returns nil if it is gone.
func openLayout(e journal.Entry) (*durable.Dir, error) {
	d, err := durable.OpenDir(filepath.Dir(e.Object))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	return d, err
}

func (h Handler) undo(ctx context.Context, j *journal.Journal, e journal.Entry) (err error) {
	d, err := openLayout(e)
	if err != nil || d == nil {
		return err
	}
	defer d.Close()
	unlock, err := lock(ctx, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	r, err := compareLayout(ctx, j, e, d)
	if err != nil {
		return err
	}
	step := h.step
	if step == nil {
		step = func(string) {}
	}
	r.now.locked()
	return r.run(ctx, step)
}

func revertHint(e journal.Entry, err error) error {
	if err == nil {
		return nil
	}
	return remedy(fmt.Errorf("revert configuration in %s: %w", filepath.Dir(e.Object), err))
}

// Revert restores what was there before the first Apply that Journal has recorded,
// as described at [Handler]. It does not look at Path and Config.
func (d Dir) Revert(ctx context.Context) error { return d.Journal.Undo(ctx, Handler{}) }

// CheckRevert says what Revert would do, and returns those errors that can be
// foreseen.
func (d Dir) CheckRevert(ctx context.Context) ([]string, error) {
	return d.Journal.CheckUndo(ctx, Handler{})
}
