// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/internal/mountinfo"
	"github.com/slipway-dev/slipway/internal/record"
	"github.com/slipway-dev/slipway/internal/unsupported"
)

// Undoer takes back what the book called Name in StateDir holds.
type Undoer struct {
	Kernel         Kernel
	StateDir, Name string
	FSType         string
	// Keep, if not nil, says why the mount on path must stay.
	Keep func(k Kernel, path string) error
}

// open reads the book; without a state directory nothing was ever recorded.
func (u Undoer) open() (*record.Book, string, error) {
	if u.StateDir == "" {
		return nil, "", unsupported.Error("no state directory, so no mount of " + u.Name + " was recorded")
	}
	book, err := record.Open(u.StateDir, u.Name)
	if err != nil || len(book.Entries()) == 0 {
		return nil, "", err
	}
	boot, err := bootID(u.Kernel)
	return book, boot, err
}

// Revert undoes newest first what is as it was left, whatever path it is on.
func (u Undoer) Revert(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	book, boot, err := u.open()
	if err != nil || book == nil {
		return err
	}
	var kept []string
	return book.Undo(ctx, func(_ context.Context, e record.Entry) error {
		if e.Kind == record.KindDir {
			return u.undoDir(book, e, kept)
		}
		err := u.undoMount(e, boot)
		if err != nil && !errors.Is(err, record.ErrChanged) {
			kept = append(kept, pathOf(e))
		}
		return err
	})
}

// undoDir removes a directory, unless it leads to one of the mounts kept or is
// somebody's mount itself.
func (u Undoer) undoDir(book *record.Book, e record.Entry, kept []string) error {
	if at := slices.IndexFunc(kept, func(path string) bool { return mountinfo.Below(path, e.Object) }); at >= 0 {
		return fmt.Errorf("directory %s stays: %s is still mounted", e.Object, kept[at])
	}
	fstype, _, mount, err := u.Kernel.Stat(e.Object)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case mount != "":
		return fmt.Errorf("directory %s is %w: %s is mounted on it, and it stays", e.Object, record.ErrChanged, fstype)
	}
	return book.UndoFile(e)
}

// Check lists what Revert would do, one line for each entry.
func (u Undoer) Check(ctx context.Context) (changes []string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	book, boot, err := u.open()
	if err != nil || book == nil {
		return nil, err
	}
	var errs []error
	for _, e := range slices.Backward(book.Entries()) {
		if e.Kind == record.KindDir {
			changes = append(changes, "remove directory "+e.Object+" if it is empty")
			continue
		}
		ours, err := u.ours(e, boot)
		switch {
		case err != nil:
			errs = append(errs, err)
		case ours:
			changes = append(changes, "unmount "+u.FSType+" from "+pathOf(e))
			errs = append(errs, u.keep(pathOf(e)))
		default:
			changes = append(changes, "forget the mount on "+pathOf(e)+", which is gone")
		}
	}
	return changes, errors.Join(errs...)
}

func (u Undoer) undoMount(e record.Entry, boot string) error {
	ours, err := u.ours(e, boot)
	if err != nil || !ours {
		return err
	}
	if err := u.keep(pathOf(e)); err != nil {
		return err
	}
	err = hint(u.FSType, u.Kernel.Unmount(pathOf(e)))
	if errors.Is(err, syscall.EBUSY) {
		return fmt.Errorf("%w (a process has a file or its working directory there, or something is mounted below)", err)
	}
	return err
}

func (u Undoer) keep(path string) error {
	if u.Keep == nil {
		return nil
	}
	return u.Keep(u.Kernel, path)
}

// ours reports whether the mount of e is there, visible, and the one that was
// recorded. Nil and false: it is gone.
func (u Undoer) ours(e record.Entry, boot string) (bool, error) {
	if e.Kind != KindMount {
		return false, fmt.Errorf("%s is recorded as a %q, which %s cannot undo", e.Object, e.Kind, u.Name)
	}
	if e.Boot != boot {
		return false, nil
	}
	path := pathOf(e)
	p, err := Look(u.Kernel, path)
	switch {
	case err != nil:
		return false, err
	case p.Mount == "" || !e.Done && e.After.Value != "" && p.Mount != e.After.Value:
		return false, nil
	case p.Mount == e.After.Value && p.Path == path:
		return true, nil
	}
	infos, err := Mounts(u.Kernel)
	if err != nil {
		return false, err
	}
	on := mountinfo.On(infos, path)
	if slices.ContainsFunc(on[:max(len(on)-1, 0)], func(m mountinfo.Mount) bool { return is(m, e.After.Value) }) {
		return false, fmt.Errorf("the mount on %s stays: %s is mounted over it; unmount that first", path, on[len(on)-1].FSType)
	}
	return false, fmt.Errorf("the mount on %s is %w: it is not the one that was made here, and stays", path, record.ErrChanged)
}

func pathOf(e record.Entry) string { return strings.TrimPrefix(e.Object, objectPrefix) }
