// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostpath

import (
	"context"
	"slices"

	"github.com/slipway-dev/slipway/internal/record"
	"github.com/slipway-dev/slipway/internal/unsupported"
)

// bookName is the record's name in the state directory.
const bookName = "hostpath"

var errNoState error = unsupported.Error("no state directory, so no host path was recorded")

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
		if kept(e.Object) {
			return nil
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
	going := map[string]bool{}
	for _, e := range slices.Backward(book.Entries()) {
		if kept(e.Object) {
			continue
		}
		change, err := book.WouldUndo(e, going)
		if err != nil {
			return nil, hint("look at host path "+e.Object, err)
		}
		if change != "" {
			changes = append(changes, change)
		}
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
