// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/record"
)

// CheckRevert says what Revert would undo, and gives the same error where it
// would do nothing.
func (i Install) CheckRevert(ctx context.Context) ([]string, error) {
	changes, err := i.checkRevert(ctx)
	if err != nil {
		return nil, fmt.Errorf("check what CNI installation to revert: %w", err)
	}
	return changes, nil
}

func (i Install) checkRevert(ctx context.Context) ([]string, error) {
	i, book, err := i.recorded()
	if err != nil {
		return nil, err
	}
	steps, err := i.undoSteps(book)
	if err != nil {
		return nil, err
	}
	var changes []string
	going := map[string]bool{} // paths that will be gone
	var held []string
	for _, s := range steps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if slices.Contains(held, s.Object) {
			continue
		}
		more, plugins, err := s.would(going, steps)
		if err != nil {
			return nil, hint(err)
		}
		changes, held = append(changes, more...), append(held, plugins...)
	}
	return changes, nil
}

// Revert puts back what earlier Applies with this StateDir changed: first the
// configurations that were set aside, so that there is always one, then ours,
// then the plugins, last the directories that were made, if empty. What is no
// longer as it was left stays, and is reported as an error. If a configuration
// cannot be put back, ours and the plugins stay. If ours stays because somebody
// has changed it, so do the plugins that it names, and all remain recorded: a
// Revert after it was removed takes them away.
//
// With KeepConf the configurations stay as they are, with the plugins that
// they name, and remain recorded.
//
// If another owner has applied since, it does nothing: [ErrNotOwner].
func (i Install) Revert(ctx context.Context) error {
	i, book, err := i.recorded()
	if err == nil {
		err = i.revert(ctx, book)
	}
	if err != nil {
		return fmt.Errorf("revert the CNI installation: %w", err)
	}
	return nil
}

// recorded opens the record, if it is this owner's to revert.
func (i Install) recorded() (Install, *record.Book, error) {
	i, err := i.withDefaults()
	if err != nil {
		return i, nil, err
	}
	if i.StateDir == "" {
		return i, nil, errNoState
	}
	book, err := record.Open(i.StateDir, bookName)
	if err != nil {
		return i, nil, err
	}
	if owner, generation := book.Owner(); generation > 0 && owner != i.Owner {
		return i, nil, fmt.Errorf("%w: last was %s (generation %d), this is %s; nothing is changed", ErrNotOwner, owner, generation, i.Owner)
	}
	return i, book, nil
}

func (i Install) revert(ctx context.Context, book *record.Book) error {
	steps, err := i.undoSteps(book)
	if err != nil {
		return err
	}
	errs := []error{ctx.Err()}
	var held []string
	for _, s := range steps {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		if slices.Contains(held, s.Object) {
			continue
		}
		if s.Kind == record.KindFile {
			errs = append(errs, durable.Sweep(filepath.Dir(s.Object)))
		}
		plugins, err := s.undo(book, steps)
		errs, held = append(errs, err), append(held, plugins...)
		if err != nil && !errors.Is(err, record.ErrChanged) && isConf(s.Entry) {
			return errors.Join(append(errs, errors.New("plugins stay while the configuration that needs them does"))...)
		}
	}
	if len(book.Entries()) == 0 {
		errs = append(errs, book.Forget()) // also a book that was only begun
	}
	return errors.Join(errs...)
}
