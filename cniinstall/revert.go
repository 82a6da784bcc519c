// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/record"
)

// CheckRevert says what Revert would undo, and gives the same error where it
// would do nothing.
func (i Install) CheckRevert(ctx context.Context) ([]string, error) {
	book, err := i.recorded()
	if err != nil {
		return nil, fmt.Errorf("check what CNI installation to revert: %w", err)
	}
	var changes []string
	going := map[string]bool{} // paths that will be gone
	for _, e := range undoOrder(book) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		change, err := wouldUndo(e, going)
		if err != nil {
			return nil, fmt.Errorf("check what CNI installation to revert: %w", err)
		}
		if change != "" {
			changes = append(changes, change)
		}
	}
	return changes, nil
}

// Revert puts back what earlier Applies with this StateDir changed, the
// configuration first, then the plugins, last the directories that they made,
// if empty. What is no longer as it was left stays, and is reported as an
// error. If the configuration cannot be put back, the plugins stay.
//
// If another owner has applied since, it does nothing: [ErrNotOwner].
func (i Install) Revert(ctx context.Context) error {
	book, err := i.recorded()
	if err == nil {
		err = revert(ctx, book)
	}
	if err != nil {
		return fmt.Errorf("revert the CNI installation: %w", err)
	}
	return nil
}

// recorded opens the record, if it is this owner's to revert.
func (i Install) recorded() (*record.Book, error) {
	i, err := i.withDefaults()
	if err != nil {
		return nil, err
	}
	if i.StateDir == "" {
		return nil, errNoState
	}
	book, err := record.Open(i.StateDir, bookName)
	if err != nil {
		return nil, err
	}
	if owner, generation := book.Owner(); generation > 0 && owner != i.Owner {
		return nil, fmt.Errorf("%w: last was %s (generation %d), this is %s; nothing is changed", ErrNotOwner, owner, generation, i.Owner)
	}
	return book, nil
}

func revert(ctx context.Context, book *record.Book) error {
	errs := []error{ctx.Err()}
	for _, e := range undoOrder(book) {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		if e.Kind == record.KindFile {
			errs = append(errs, durable.Sweep(filepath.Dir(e.Object)))
		}
		err := undo(book, e)
		errs = append(errs, err)
		if err != nil && !errors.Is(err, record.ErrChanged) && isConf(e) {
			return errors.Join(append(errs, errors.New("plugins stay while the configuration that needs them does"))...)
		}
	}
	if len(book.Entries()) == 0 {
		errs = append(errs, book.Forget()) // also a book that was only begun
	}
	return errors.Join(errs...)
}

// undo puts one entry back and forgets it; one that is somebody else's by now
// is forgotten too.
func undo(book *record.Book, e record.Entry) error {
	if e.Kind != record.KindFile && e.Kind != record.KindDir {
		return fmt.Errorf("%s: unknown kind %q of entry, which a newer version may have made", e.Object, e.Kind)
	}
	err := book.UndoFile(e)
	if err != nil && !errors.Is(err, record.ErrChanged) {
		return hint(err)
	}
	return errors.Join(err, book.Forget(e.Object))
}

// undoOrder: configurations, plugins, directories, each newest first.
func undoOrder(book *record.Book) []record.Entry {
	entries := book.Entries()
	slices.Reverse(entries)
	slices.SortStableFunc(entries, func(a, b record.Entry) int { return undoRank(a) - undoRank(b) })
	return entries
}

func undoRank(e record.Entry) int {
	switch {
	case isConf(e):
		return 0
	case e.Kind == record.KindDir:
		return 2
	}
	return 1
}

func isConf(e record.Entry) bool {
	return e.Kind == record.KindFile && slices.Contains(confSuffixes, filepath.Ext(e.Object))
}

// wouldUndo is what Revert would do about e; empty: nothing.
func wouldUndo(e record.Entry, going map[string]bool) (string, error) {
	now, err := record.Snapshot(e.Object)
	if err != nil {
		return "", err
	}
	switch {
	case now.Same(e.Before) || !e.Left(now):
		return "", nil
	case e.Before.Type != "":
		return "restore " + e.Object, nil
	case e.Kind == record.KindDir:
		if empty, err := emptyBut(e.Object, going); err != nil || !empty {
			return "", err
		}
	}
	going[e.Object] = true
	if e.Kind == record.KindDir {
		return "remove directory " + e.Object, nil
	}
	return "remove " + e.Object, nil
}

// emptyBut reports whether dir holds nothing but what is going.
func emptyBut(dir string, going map[string]bool) (bool, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !going[filepath.Join(dir, e.Name())] }), nil
}
