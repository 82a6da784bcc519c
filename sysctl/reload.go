// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/failure"
)

// reload is a Reloader that works, and what it does.
type reload struct {
	Reloader
	how   string                      // in one line
	blame func(context.Context) error // names the lines that made a reload fail
	done  bool
}

// now reloads, unless there is a bus without systemd, or the service starts
// only after this process.
func (r *reload) now(ctx context.Context) error {
	err := r.Reload(ctx)
	r.done = err == nil
	var failed jobFailed
	switch {
	case errors.Is(err, ErrNoSystemd):
		return nil
	case errors.As(err, &failed):
		return errors.Join(err, r.blame(ctx))
	}
	return err
}

// once is now, unless that was done.
func (r *reload) once(ctx context.Context) error {
	if r.done {
		return nil
	}
	return r.now(ctx)
}

// isReloadDue reports whether the file is not as wanted, or a value differs that this process
// may not write.
func (d DropIn) isReloadDue(ctx context.Context, file ledger.Want, own []target) bool {
	if d.Reload == nil {
		return false
	}
	now, err := file.Kind.Read(ctx, file.Object)
	if err != nil || !now.Equal(file.To) {
		return true
	}
	changes, _ := d.Kernel.changes(own, aReloader) // the ledger reports what cannot be read
	for _, c := range changes {
		if at, _ := c.Key.path(); denied(d.Kernel.files().Writable(at)) {
			return true
		}
	}
	return false
}

// reloading returns what applies the files. Nil: there is no systemd.
func (d DropIn) reloading(ctx context.Context, content []byte) (*reload, error) {
	how, err := d.Reload.Reloading(ctx)
	switch {
	case errors.Is(err, ErrNoSystemd):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reload: %w", err)
	}
	blame := func(ctx context.Context) error { return d.blame(ctx, content) }
	return &reload{Reloader: d.Reload, how: how, blame: blame}, nil
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
