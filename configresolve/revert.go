// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/slipway-dev/slipway/internal/record"
	"github.com/slipway-dev/slipway/internal/unsupported"
)

// Revert puts back what was there before the first Apply that StateDir notes.
// An earlier layout, whoever wrote it, comes back through the same swap: its
// keys, values, modes and owners. Only its data directory may have another
// name, where its own is of no known form or taken, and what nothing showed is
// not brought back. A file that stood in the place of a key comes back, and the
// directories that Apply made go if nothing else is in them.
//
// A configuration that is no longer the one written is left as it is, reported
// and forgotten; so is whatever has taken the place of a key's link since. What
// Apply wrote to a file system in memory (tmpfs) before the last reboot is gone:
// what is there now is somebody else's, and nothing is done. Killed at any
// point, Revert can be repeated. Dir and Config are not looked at.
func (w Write) Revert(ctx context.Context) error { return w.revert(ctx, func(string) {}) }

func (w Write) revert(ctx context.Context, step func(string)) error {
	book, err := w.book(ctx)
	if err != nil {
		return err
	}
	return book.Undo(ctx, func(ctx context.Context, e record.Entry) error {
		if e.Kind != kindLayout {
			return book.UndoFile(e)
		}
		if err := w.undoLayout(ctx, book, e, step); err != nil {
			return remedy(fmt.Errorf("revert configuration in %s: %w", filepath.Dir(e.Object), err))
		}
		return nil
	})
}

// CheckRevert says what Revert would do: nothing about what Revert would only
// report, since it is no longer as it was left.
func (w Write) CheckRevert(ctx context.Context) ([]string, error) {
	book, err := w.book(ctx)
	if err != nil {
		return nil, err
	}
	going := map[string]bool{} // paths that would be gone
	var lines []string
	for _, e := range slices.Backward(book.Entries()) {
		would := book.WouldUndo
		if e.Kind == kindLayout {
			would = func(e record.Entry, going map[string]bool) (string, error) {
				return w.wouldUndo(ctx, book, e, going)
			}
		}
		line, err := would(e, going)
		if err != nil {
			return nil, remedy(fmt.Errorf("revert configuration in %s: %w", filepath.Dir(e.Object), err))
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

var errNoState error = unsupported.Error("no state directory, so no configuration was recorded")

func (w Write) book(ctx context.Context) (*record.Book, error) {
	if w.StateDir == "" {
		return nil, errNoState
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("revert configuration: %w", err)
	}
	book, err := record.Open(w.StateDir, bookName)
	if err != nil {
		return nil, fmt.Errorf("revert configuration: %w", err)
	}
	return book, nil
}

// openLayout opens the directory of e, and returns nil if a reboot or somebody else
// has taken it away.
func openLayout(e record.Entry) (*os.Root, error) {
	if outlived, err := e.Outlived(); err != nil || outlived {
		return nil, err
	}
	root, err := os.OpenRoot(filepath.Dir(e.Object))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return root, err
}

func (w Write) undoLayout(ctx context.Context, book *record.Book, e record.Entry, step func(string)) error {
	root, err := openLayout(e)
	if err != nil || root == nil {
		return err
	}
	defer root.Close()
	unlock, err := lockDir(ctx, root.Name())
	if err != nil {
		return err
	}
	defer unlock()
	u, err := w.compareLayout(ctx, book, e, root)
	if err != nil {
		return err
	}
	return u.run(ctx, step)
}

func (w Write) wouldUndo(ctx context.Context, book *record.Book, e record.Entry, going map[string]bool) (string, error) {
	root, err := openLayout(e)
	if err != nil || root == nil {
		return "", err
	}
	defer root.Close()
	u, err := w.compareLayout(ctx, book, e, root)
	if errors.Is(err, record.ErrChanged) {
		return "", nil
	}
	if err != nil || u.done() {
		return "", err
	}
	for _, name := range u.goes() {
		going[filepath.Join(root.Name(), name)] = true
	}
	if u.was.empty() {
		return "remove configuration from " + root.Name(), nil
	}
	return "restore the earlier configuration in " + root.Name(), nil
}
