// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// leftToReloader reports whether err means only that this process may not write
// values that a Reloader may.
func (p *dropInPlan) leftToReloader(err error) bool { return p.reloader != nil && denied(err) }

func denied(err error) bool {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(all.Unwrap(), func(err error) bool { return !denied(err) })
	}
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// unwritten returns err, with its consequence for the file.
func (p *dropInPlan) unwritten(err error) error {
	if !p.write {
		return err
	}
	return fmt.Errorf("%s is not written, since its values cannot be set: %w", p.path, err)
}

// writeFile begins the file's entry, which [dropInPlan.complete] completes at the
// end: until then the next Apply starts over. The entry needs those of the values,
// so that the file, which would set them again, is removed before they are put
// back.
func (p *dropInPlan) writeFile(ctx context.Context, k Kernel, r *recorder) error {
	if p.refused != nil {
		return p.refused
	}
	if p.write {
		if err := dropIns.MkdirAll(ctx, r.journal, filepath.Dir(p.path), 0o755); err != nil {
			return remedy.File(err)
		}
		if err := dropIns.Begin(ctx, r.journal, p.path, p.file, p.keys(k)...); err != nil {
			return err
		}
	}
	if err := p.outlast(ctx, k, r); err != nil || !p.write {
		return err
	}
	return remedy.File(errors.Join(durable.Sweep(filepath.Dir(p.path)), durable.WriteFile(p.path, 0o644, p.content)))
}

// keys lists the keys that the file sets.
func (p *dropInPlan) keys(k Kernel) (keys []string) {
	targets, _ := expand(k.files(), p.own) // its errors have been reported
	for _, t := range targets {
		keys = append(keys, object(t.Key))
	}
	return keys
}

// outlast records that the values return after a reboot, if the file is ours and
// survives one.
func (p *dropInPlan) outlast(ctx context.Context, k Kernel, r *recorder) error {
	if lasts, err := p.lasts(ctx, r.journal); err != nil || !lasts {
		return err
	}
	return r.outlast(ctx, k, p.own)
}

// lasts reports whether the file is ours, and survives a reboot.
func (p *dropInPlan) lasts(ctx context.Context, j *journal.Journal) (bool, error) {
	file, ours, err := j.Lookup(ctx, kindFile, p.path)
	return ours && file.Boot == "", err
}

func (p *dropInPlan) complete(ctx context.Context, j *journal.Journal) error {
	if !p.write {
		return nil
	}
	return dropIns.Complete(ctx, j, p.path)
}

// reload applies all files, if there is a Reloader, after recording every value
// that this will change. The Reloader does not protect routes learnt from IPv6
// routers: the values that keep them are set first, or there is no reload.
func (p *dropInPlan) reload(ctx context.Context, k Kernel, r *recorder) error {
	if p.reloader == nil {
		return p.reloadErr
	}
	own, err := k.diffBy(p.own, aReloader) // empty, except values that may not be set here
	if errors.Is(err, errRouter) {
		return err
	}
	if err := p.lookBeyond(k); err != nil { // our own values may have changed others
		return err
	}
	var beyond []Change
	for _, c := range p.beyond {
		beyond = append(beyond, c.Change)
	}
	others := newRecorder(r.journal) // the next boot sets them again
	if err := errors.Join(r.begin(ctx, k, own), others.begin(ctx, k, beyond)); err != nil {
		return err
	}
	guards := slices.DeleteFunc(slices.Concat(own, beyond), func(c Change) bool { return !c.guard })
	if err = k.writeAll(ctx, guards, map[Key]bool{}); err == nil {
		err = p.restart(ctx, k)
	}
	return errors.Join(err, r.end(ctx, k, own), others.end(ctx, k, beyond))
}

// restart reloads, unless there is a bus without systemd, or the service starts
// only after this process.
func (p *dropInPlan) restart(ctx context.Context, k Kernel) error {
	err := p.reloader.Reload(ctx)
	var failed jobFailed
	switch {
	case errors.Is(err, ErrNoSystemd):
		return nil
	case errors.As(err, &failed):
		return errors.Join(err, p.blame(ctx, k))
	}
	return err
}

// blame names the lines that made a reload fail: invalid ones, and those whose
// values the kernel did not take.
func (p *dropInPlan) blame(ctx context.Context, k Kernel) error {
	_, _, err := effective(ctx, p.dirs, p.path, p.content)
	var errs failure.Set
	errs.Add(err)
	targets, _ := expand(k.files(), p.others)
	for _, t := range targets {
		t.IfExists = true
		c, err := k.differs(t, thisProcess)
		switch {
		case err != nil && !denied(err):
			errs.Add(fmt.Errorf("%s:%d: %w", t.File, t.Line, err))
		case err == nil && c != nil && !t.IgnoreFailure:
			errs.Add(fmt.Errorf("%s:%d sets %s = %s, but it is %s", t.File, t.Line, t.Key, shown(t.Key, t.Value), shown(t.Key, c.Old)))
		}
	}
	return errs.Join()
}
