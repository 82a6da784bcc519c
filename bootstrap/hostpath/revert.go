// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostpath

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/slipway-dev/slipway/internal/record"
)

// bookName is the record's name in the state directory.
const bookName = "hostpath"

var errNoState = fmt.Errorf("host paths were not recorded, since no state directory is set: %w", errors.ErrUnsupported)

// Revert removes what Apply made and recorded in StateDir, last made first:
// files that are still empty and as they were made, directories that are empty.
// Anything else is in use by now: it is left, named in the error, and no longer
// counted as made by Apply. What was made in memory (on a tmpfs, such as /run)
// before the last reboot is gone, and left if it is there again.
// /run/xtables.lock is never removed, since a process
// may hold it locked.
func (a Action) Revert(ctx context.Context) error {
	book, err := a.open(ctx)
	if err != nil {
		return err
	}
	err = book.Undo(ctx, func(_ context.Context, e record.Entry) error {
		if gone, err := beyondUndo(e); gone || err != nil {
			return err
		}
		return book.UndoFile(e)
	})
	if err != nil {
		return hint("revert host paths", err)
	}
	return nil
}

// CheckRevert names what Revert would remove.
func (a Action) CheckRevert(ctx context.Context) (changes []string, err error) {
	book, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	var gone []string
	for _, e := range slices.Backward(book.Entries()) {
		removable, err := removable(e, gone)
		if err != nil {
			return nil, hint("look at host path "+e.Object, err)
		}
		if !removable {
			continue
		}
		gone = append(gone, e.Object)
		changes = append(changes, "remove "+noun(e)+" "+e.Object)
	}
	return changes, nil
}

func (a Action) open(ctx context.Context) (*record.Book, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if a.StateDir == "" {
		return nil, errNoState
	}
	book, err := record.Open(a.StateDir, bookName)
	if err != nil {
		return nil, hint("host paths", err)
	}
	return book, nil
}

// removable reports whether Revert would remove e's object, once what is in
// gone is gone.
func removable(e record.Entry, gone []string) (bool, error) {
	if gone, err := beyondUndo(e); gone || err != nil {
		return false, err
	}
	now, err := record.Snapshot(e.Object)
	if err != nil || now.Type == "" {
		return false, err
	}
	if !e.Left(now) || e.Kind != record.KindDir {
		return e.Left(now), nil
	}
	entries, err := os.ReadDir(e.Object)
	return !slices.ContainsFunc(entries, func(d os.DirEntry) bool {
		return !slices.Contains(gone, filepath.Join(e.Object, d.Name()))
	}), err
}

// beyondUndo reports whether there is nothing to undo for e, whatever is at its
// path: a file that is kept for ever, or something that a reboot took away, so
// that what is there now is somebody else's.
func beyondUndo(e record.Entry) (bool, error) {
	if kept(e.Object) {
		return true, nil
	}
	return e.Outlived()
}

func noun(e record.Entry) string {
	if e.Kind == record.KindDir {
		return "directory"
	}
	return "file"
}
