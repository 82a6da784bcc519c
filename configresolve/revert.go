// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/durable"
)

// Handler undoes what a [Write] has recorded.
//
// An earlier layout, whoever wrote it, comes back through the same swap: its
// keys, values, modes and owners. Only its data directory may have another name,
// where its own is of no known form or taken, and what nothing showed is not
// brought back. A file that stood in the place of a key comes back, and the
// directories that Apply made go if nothing else is in them.
//
// A configuration that is no longer the one written is left as it is, reported
// and forgotten; so is whatever has taken the place of a key's link since. What
// Apply wrote to a file system in memory (tmpfs) before the last reboot is gone:
// what is there now is somebody else's, and nothing is done. Killed at any
// point, undoing can be repeated.
type Handler struct {
	step func(string) // called with a description before each change; may be nil
}

// Kinds lists the kinds of entries of a configuration.
func (Handler) Kinds() []string { return append(files.Kinds(), kindLayout) }

// Owns is an error for what cannot be part of a configuration.
func (Handler) Owns(e journal.Entry) error {
	name := filepath.Base(e.Object)
	if e.Kind == kindLayout && name != dataLink {
		return fmt.Errorf("%q is not the link %s", e.Object, dataLink)
	}
	if e.Kind == kindKey {
		if err := checkKey(name); err != nil {
			return fmt.Errorf("the key %s %w", quote(name), err)
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

func (h Handler) undo(ctx context.Context, j *journal.Journal, e journal.Entry) error {
	d, err := openLayout(e)
	if err != nil || d == nil {
		return err
	}
	defer d.Close()
	if err := lock(ctx, d); err != nil {
		return err
	}
	r, err := compareLayout(ctx, j, e, d)
	if err != nil {
		return err
	}
	step := h.step
	if step == nil {
		step = func(string) {}
	}
	return r.run(ctx, step)
}

func revertHint(e journal.Entry, err error) error {
	if err == nil {
		return nil
	}
	return remedy(fmt.Errorf("revert configuration in %s: %w", filepath.Dir(e.Object), err))
}

// Revert puts back what was there before the first Apply that Journal has
// recorded, as [Handler] says. Dir and Config are not looked at.
func (w Write) Revert(ctx context.Context) error { return w.Journal.Undo(ctx, Handler{}) }

// CheckRevert says what Revert would do, and gives the errors that can be told
// beforehand.
func (w Write) CheckRevert(ctx context.Context) ([]string, error) {
	return w.Journal.CheckUndo(ctx, Handler{})
}
