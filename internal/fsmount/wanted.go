// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/mount"
)

// Wanted is a mount that the package Kind wants. Its methods are those of the package's
// action.
type Wanted struct {
	Kind            string // of entries: Kind/mount, and those of journal.Files
	FSType, Options string
	Kernel          mount.Mounter // if nil, the running one
	Look            func(mount.Mounter) (Found, error)
}

// Found is the place of a mount, and what there is to do.
type Found struct {
	Place
	Mounted bool         // as wanted
	Refused error        // why nothing can be mounted there
	Note    string       // follows the change that Check names
	Anew    string       // why the present mount has to be replaced
	Clear   func() error // unmounts it; may be nil
}

func (w Wanted) find(ctx context.Context) (Found, mount.Mounter, error) {
	k := Or(w.Kernel)
	if err := ctx.Err(); err != nil {
		return Found{}, k, err
	}
	f, err := w.Look(k)
	return f, k, err
}

// Check lists the changes that Apply would make.
func (w Wanted) Check(ctx context.Context) (changes []string, err error) {
	f, k, err := w.find(ctx)
	switch {
	case err != nil:
		return nil, err
	case f.Mounted:
		return journal.From(ctx).CheckWishes(ctx, w.wish(f.Place))
	case f.Refused != nil:
		return nil, f.Refused
	case f.Anew != "":
		return []string{"mount " + w.FSType + " anew on " + f.Path + " (" + f.Anew + ")"}, nil
	}
	if changes, err = f.plan(k, "mount "+w.FSType); err != nil {
		return nil, w.wrap(f, err)
	}
	changes[len(changes)-1] += f.Note
	return changes, nil
}

// CheckPermission returns an error if this process could not mount.
func (w Wanted) CheckPermission(ctx context.Context) error {
	f, _, err := w.find(ctx)
	if err != nil || f.Mounted || w.Kernel != nil {
		return err
	}
	return w.wrap(f, permission(w.FSType))
}

// Apply mounts, unless that is done: if several calls run at once, even in several
// processes, one of them mounts and the others find that mount.
func (w Wanted) Apply(ctx context.Context) error {
	f, k, err := w.find(ctx)
	switch {
	case err != nil:
		return err
	case f.Mounted:
		return w.wrap(f, w.record(ctx, k, f.Place))
	case f.Refused != nil:
		return f.Refused
	}
	err = w.attach(ctx, k, f)
	if errors.Is(err, syscall.EBUSY) {
		if again, _, lookErr := w.find(ctx); lookErr == nil && again.Mounted {
			return nil // another process was first
		}
	}
	return w.wrap(f, err)
}

func (w Wanted) wrap(f Found, err error) error {
	if err != nil {
		return fmt.Errorf("mount %s on %s: %w", w.FSType, f.Path, err)
	}
	return nil
}
