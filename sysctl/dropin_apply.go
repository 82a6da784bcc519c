// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/record"
)

func (p *dropInPlan) writeFile(book *record.Book) error {
	if !p.write {
		return nil
	}
	dir := filepath.Dir(p.path)
	if book == nil {
		if p.makeDir {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
		return errors.Join(durable.Sweep(dir), durable.WriteFile(p.path, 0o644, p.content))
	}
	if err := book.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := book.BeginFile(p.path, p.file); err != nil {
		return err
	}
	if err := errors.Join(durable.Sweep(dir), durable.WriteFile(p.path, 0o644, p.content)); err != nil {
		return err
	}
	return book.CompleteFile(p.path)
}

func fileHint(err error) error {
	switch {
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w (mount the host's directory read-write)", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w (needs root, or CAP_DAC_OVERRIDE)", err)
	}
	return err
}

// reload has all files applied, if anybody can, with every value noted that it
// is going to change. Of an IPv6 router's routes it knows nothing: what keeps
// them comes first, or there is no reload.
func (p *dropInPlan) reload(ctx context.Context, k Kernel, j *journal) error {
	if p.reloader == nil {
		return p.reloadErr
	}
	own, beyond := slices.Clone(p.changes), []Change(nil)
	for _, c := range p.beyond {
		beyond = append(beyond, c.Change)
	}
	for i := range own {
		own[i].ignore = false // what comes of a reload is no refusal by the kernel
	}
	others := j.untilReboot() // the next boot sets them anyway
	if err := errors.Join(j.begin(k, own), others.begin(k, beyond)); err != nil {
		return err
	}
	guards := slices.DeleteFunc(slices.Concat(own, beyond), func(c Change) bool { return !c.guard })
	err := k.writeAll(ctx, guards, map[Key]bool{})
	if err == nil {
		err = p.reloader.Reload(ctx)
	}
	if errors.Is(err, errors.ErrUnsupported) { // said so by plan, or a bus with nobody on it
		err = nil
	}
	return errors.Join(err, j.end(k, own), others.end(k, beyond))
}

// undoFiles removes or brings back the file, then directories that were made.
func undoFiles(ctx context.Context, book *record.Book) error {
	var gone []string
	var errs []error
	for _, e := range slices.Backward(book.Entries()) {
		if e.Kind != record.KindFile && e.Kind != record.KindDir {
			continue
		}
		if err := ctx.Err(); err != nil {
			errs = append(errs, err)
			break
		}
		if e.Kind == record.KindFile {
			errs = append(errs, durable.Sweep(filepath.Dir(e.Object)))
		}
		err := book.UndoFile(e)
		if err != nil {
			errs = append(errs, fileHint(err))
		}
		if err == nil || errors.Is(err, record.ErrChanged) {
			gone = append(gone, e.Object)
		}
	}
	if len(gone) > 0 {
		errs = append(errs, book.Forget(gone...))
	}
	return errors.Join(errs...)
}

// fileLines says what undoFiles would do.
func fileLines(book *record.Book) ([]string, error) {
	var all []string
	var errs []error
	for _, e := range slices.Backward(book.Entries()) {
		if e.Kind != record.KindFile && e.Kind != record.KindDir {
			continue
		}
		now, err := record.Snapshot(e.Object)
		switch {
		case err != nil:
			errs = append(errs, err)
		case now.Same(e.Before):
		case e.Done && !now.Same(e.After):
			all = append(all, fmt.Sprintf("leave %s: %v", e.Object, record.ErrChanged))
		case e.Before.Type == "":
			all = append(all, "remove "+e.Object)
		default:
			all = append(all, "restore "+e.Object)
		}
	}
	return all, errors.Join(errs...)
}
