// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/record"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// page is an entry of a file or directory, and its book.
type page struct {
	record.Entry
	book *record.Book
}

// filePages lists the files of all books, then the directories that were made
// for them, the deepest first.
func filePages(js []*journal) []page {
	var files, dirs []page
	for _, j := range js {
		for _, e := range slices.Backward(j.book.Entries()) {
			switch e.Kind {
			case record.KindFile:
				files = append(files, page{e, j.book})
			case record.KindDir:
				dirs = append(dirs, page{e, j.book})
			}
		}
	}
	slices.SortStableFunc(dirs, func(a, b page) int { return len(b.Object) - len(a.Object) })
	return append(files, dirs...)
}

// undoFiles removes or brings back the files, then the directories. They are
// to be forgotten when the values are back: a book's time says when it was
// last changed by an Apply, and a file that is back is so when asked again.
func undoFiles(ctx context.Context, js []*journal) (forget func() error, err error) {
	var errs []error
	var kept []string
	gone := map[*record.Book][]string{}
	for _, p := range filePages(js) {
		if err := ctx.Err(); err != nil {
			errs = append(errs, err)
			break
		}
		if slices.ContainsFunc(kept, func(k string) bool { return isBelow(k, p.Object) }) {
			continue // it has been reported
		}
		err := p.undo()
		if err != nil {
			errs = append(errs, remedy.File(err))
		}
		if err == nil || errors.Is(err, record.ErrChanged) {
			gone[p.book] = append(gone[p.book], p.Object)
		} else {
			kept = append(kept, p.Object)
		}
	}
	return func() error { return forgetAll(gone) }, errors.Join(errs...)
}

func forgetAll(objects map[*record.Book][]string) error {
	var errs []error
	for book, gone := range objects {
		errs = append(errs, book.Forget(gone...))
	}
	return errors.Join(errs...)
}

func (p page) undo() error {
	if p.Kind == record.KindFile {
		if err := durable.Sweep(filepath.Dir(p.Object)); err != nil {
			return err
		}
	}
	return p.book.UndoFile(p.Entry)
}

func isBelow(path, dir string) bool { return strings.HasPrefix(path, dir+string(filepath.Separator)) }

// fileLines says what undoFiles would do.
func fileLines(js []*journal) ([]string, error) {
	var all []string
	var errs []error
	going := map[string]bool{}
	for _, p := range filePages(js) {
		line, err := p.book.WouldUndo(p.Entry, going)
		if err != nil {
			errs = append(errs, remedy.File(err))
		}
		if line != "" {
			all = append(all, line)
		}
	}
	return all, errors.Join(errs...)
}
