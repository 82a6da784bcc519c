// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/failure"
)

// reload is a Reloader that works, and what it does.
type reload struct {
	Reloader
	how     string                      // in one line
	blame   func(context.Context) error // names the lines that made a reload fail
	follows bool                        // the file is written first
	done    bool
	err     error // of what was done
}

// now reloads, unless there is a bus without systemd, or the service starts
// only after this process.
func (r *reload) now(ctx context.Context) error {
	r.done, r.err = true, r.Reload(ctx)
	var failed jobFailed
	switch {
	case errors.Is(r.err, ErrNoSystemd):
		r.err = nil
	case errors.As(r.err, &failed):
		r.err = errors.Join(r.err, r.blame(ctx))
	}
	return r.err
}

// once is now, unless that was done, or the file could not be written.
func (r *reload) once(ctx context.Context) error {
	switch {
	case r.done:
		return r.err
	case r.follows:
		return errors.New("left off: the file that sets it is not written")
	}
	return r.now(ctx)
}

// setsDenied reports whether a value differs that only another process may write.
func (k Kernel) setsDenied(own []target) bool {
	changes, _ := k.changes(own, aReloader) // the ledger reports what cannot be read
	return slices.ContainsFunc(changes, func(c Change) bool {
		at, _ := c.Key.path()
		return denied(k.files().Writable(at))
	})
}

// reloading returns what applies the files, if that is due: the file is not as wanted, or
// a value differs that this process may not write. Nil: it is not, or there is no systemd.
func (d DropIn) reloading(ctx context.Context, file ledger.Want, own []target, content []byte) (*reload, error) {
	if d.Reload == nil {
		return nil, nil
	}
	now, err := file.Kind.Read(ctx, file.Object)
	follows := err != nil || !now.Equal(file.To)
	if !follows && !d.Kernel.setsDenied(own) {
		return nil, nil
	}
	how, err := d.Reload.Reloading(ctx)
	switch {
	case errors.Is(err, ErrNoSystemd):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reload: %w", err)
	}
	blame := func(ctx context.Context) error { return d.blame(ctx, content) }
	return &reload{Reloader: d.Reload, how: how, blame: blame, follows: follows}, nil
}

// otherChange is a value that a reload sets because of another file.
type otherChange struct {
	Change
	by string
}

func changesOf(beyond []otherChange) (changes []Change) {
	for _, c := range beyond {
		changes = append(changes, c.Change)
	}
	return changes
}

// beyond lists the changes that a reload makes besides our keys. Like systemd,
// it skips keys that cannot be read, or that no process can write.
func (d DropIn) beyond(own []target, all []assignment, r *reload) (beyond []otherChange) {
	if r == nil {
		return nil
	}
	ours := map[string]bool{}
	for _, t := range own {
		ours[oneName(t.path)] = true
	}
	targets, _ := expand(d.Kernel.files(), all) // [DropIn.Advise] reports the errors of other files
	for _, t := range targets {
		t.IgnoreFailure = true
		if c, _ := d.Kernel.differs(t, aReloader); c != nil && !ours[oneName(t.path)] {
			beyond = append(beyond, otherChange{*c, fmt.Sprintf("by %s:%d", t.File, t.Line)})
		}
	}
	return beyond
}

// alongReload lists what a reload changes, until the next boot: then other files set it.
func (k Kernel) alongReload(ctx context.Context, beyond []otherChange) (sides []ledger.Side, err error) {
	v := &values{Kernel: k}
	kind, errs := v.kind(), []error(nil)
	for _, c := range beyond {
		at, _ := c.Key.path()
		side := ledger.Side{Kind: kind, Object: string(c.Key), To: wantedState(at, c.New), Change: c.String() + ", " + c.by}
		further, err := v.along(ctx, string(c.Key), side.To)
		sides, errs = append(append(sides, side), further...), append(errs, err)
	}
	for i := range sides {
		sides[i].Boot = true
	}
	return sides, errors.Join(errs...)
}

// blame names the lines that made a reload fail: invalid ones, and those whose
// values the kernel did not take.
func (d DropIn) blame(ctx context.Context, content []byte) error {
	all, _, err := effective(ctx, d.dirs(), d.path(), content)
	var errs failure.Set
	errs.Add(err)
	targets, _ := expand(d.Kernel.files(), all)
	for _, t := range targets {
		t.IfExists = true
		c, err := d.Kernel.differs(t, thisProcess)
		switch {
		case err != nil && !denied(err):
			errs.Add(fmt.Errorf("%s:%d: %w", t.File, t.Line, err))
		case err == nil && c != nil && !t.IgnoreFailure:
			errs.Add(fmt.Errorf("%s:%d sets %s = %s, but it is %s", t.File, t.Line, t.Key, shown(t.Key, t.Value), shown(t.Key, c.Old)))
		}
	}
	return errs.Join()
}
