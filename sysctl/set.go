// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Set writes the values that differ from settings, and reads them back. If one
// fails, the others are still set; the errors are joined, each with its key and
// value. Values of links below net need CAP_NET_ADMIN, others root.
func (k Kernel) Set(settings ...Setting) error {
	return k.converge(context.Background(), assignments(settings), &recorder{})
}

// converge processes the differences twice: one key may change another that was
// right. The kernel does not accept a value that still differs after that.
func (k Kernel) converge(ctx context.Context, as []assignment, r *recorder) error {
	failed := map[Key]bool{}
	var errs []error
	for pass := 0; ; pass++ {
		changes, err := k.diff(as)
		changes = slices.DeleteFunc(changes, func(c Change) bool { return failed[c.Key] })
		if len(changes) == 0 {
			return errors.Join(append(errs, err)...)
		}
		if pass == 2 {
			return errors.Join(append(errs, err, refused(changes))...)
		}
		if err := r.begin(ctx, k, changes); err != nil {
			return errors.Join(append(errs, err)...)
		}
		errs = append(errs, k.writeAll(ctx, changes, failed))
		errs = append(errs, r.end(ctx, k, changes))
		if ctx.Err() != nil {
			return errors.Join(errs...)
		}
	}
}

// writeAll makes the changes and puts the keys that failed into failed.
func (k Kernel) writeAll(ctx context.Context, changes []Change, failed map[Key]bool) error {
	var errs []error
	unguarded := false
	for _, c := range changes {
		err := ctx.Err()
		switch {
		case err != nil:
		case unguarded && c.forwards6():
			err = fmt.Errorf("left off: %w", errRouter)
		case c.guard: // the next change depends on it
			err = k.put(c.Key, c.New)
		default:
			err = k.write(c.Key, c.New)
		}
		if err == nil {
			continue
		}
		failed[c.Key] = true
		unguarded = unguarded || c.guard
		if !c.ignore || ctx.Err() != nil {
			errs = append(errs, &Error{opSet, c.Key, c.New, err})
		}
	}
	return errors.Join(errs...)
}

// write sets a key, unless an earlier write has already changed it along with
// another.
func (k Kernel) write(key Key, value string) error {
	at, err := key.path()
	if err != nil {
		return err
	}
	if now, err := k.read(at); err == nil && sameValue(at, now, value) {
		return nil
	}
	return hint(key, pathless(k.files().WriteFile(at, []byte(value+"\n"))))
}

// put is write, then reads the value back.
func (k Kernel) put(key Key, value string) error {
	if err := k.write(key, value); err != nil {
		return err
	}
	at, _ := key.path()
	now, err := k.read(at)
	if err == nil && !sameValue(at, now, value) {
		err = swallowed{now: shown(key, now)}
	}
	return err
}

func refused(changes []Change) error {
	var errs []error
	for _, c := range changes {
		if !c.ignore {
			errs = append(errs, &Error{opSet, c.Key, c.New, swallowed{shown(c.Key, c.Old), " (another key, a security module or the kernel's limits decide it)"}})
		}
	}
	return errors.Join(errs...)
}
