// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// reload is a reloader that works, and what it does.
type reload struct {
	reloader
	how     string // in one line
	follows bool   // the file is written first
	done    bool
	err     error // of what was done
}

// now reloads, unless there is a bus without systemd, or the service starts
// only after this process.
func (r *reload) now(ctx context.Context) error {
	r.done, r.err = true, r.Reload(ctx)
	if errors.Is(r.err, errNoSystemd) {
		r.err = nil
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
	return slices.ContainsFunc(k.changes(own, aReloader), func(c target) bool { return denied(k.files().Writable(c.path)) })
}

// reloading returns what applies the files, if that is due: the file is not as wanted, or
// a value differs that this process may not write. Nil: it is not, or there is no systemd.
func (d DropIn) reloading(ctx context.Context, file ledger.Want, own []target) (*reload, error) {
	if d.Reload == "" {
		return nil, nil
	}
	now, err := file.Kind.Read(ctx, file.Object)
	follows := err != nil || !now.Equal(file.To)
	if !follows && !d.Kernel.setsDenied(own) {
		return nil, nil
	}
	how, err := d.reloader().Reloading(ctx)
	switch {
	case errors.Is(err, errNoSystemd):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reload: %w", err)
	}
	return &reload{reloader: d.reloader(), how: how, follows: follows}, nil
}

// beyond lists the changes that a reload makes besides our keys, because of other files. Like
// systemd, it skips keys that cannot be read, or that no process can write.
func (d DropIn) beyond(own []target, all []target, r *reload) (beyond []target) {
	if r == nil {
		return nil
	}
	ours := map[string]bool{}
	for _, t := range own {
		ours[t.one()] = true
	}
	targets, _ := expand(d.Kernel.files(), all) // [DropIn.Advise] reports the errors of other files
	for i := range targets {
		targets[i].IgnoreFailure = true
	}
	for _, c := range d.Kernel.changes(targets, aReloader) {
		if !ours[c.one()] {
			c.why = fmt.Sprintf("by %s:%d", c.File, c.Line)
			beyond = append(beyond, c)
		}
	}
	return beyond
}

// alongReload lists what a reload changes, until the next boot: then other files set it.
func (k Kernel) alongReload(ctx context.Context, beyond []target) (sides []ledger.Side, err error) {
	v := &values{Kernel: k}
	kind, errs := v.kind(), []error(nil)
	for _, c := range beyond {
		side := ledger.Side{Kind: kind, Object: string(c.Key), To: wantedState(c.path, c.Value), Change: c.change()}
		further, err := v.along(ctx, string(c.Key), side.To)
		sides, errs = append(append(sides, side), further...), append(errs, err)
	}
	for i := range sides {
		sides[i].Boot = true
	}
	return sides, errors.Join(errs...)
}
