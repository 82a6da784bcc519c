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

// leftToReloader reports whether err says no more than that this process may not
// write values, while there is a Reloader that may.
func (p *dropInPlan) leftToReloader(err error) bool { return p.reloader != nil && denied(err) }

func denied(err error) bool {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(all.Unwrap(), func(err error) bool { return !denied(err) })
	}
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// unwritten returns err, and adds what it means for the file.
func (p *dropInPlan) unwritten(err error) error {
	if !p.write {
		return err
	}
	return fmt.Errorf("%s is not written, since its values cannot be set: %w", p.path, err)
}

// writeFile begins the file's entry, which [dropInPlan.complete] completes when
// everything is done: until then the next Apply does it all again. The entry needs
// those of the values, so that the file is removed before they are put back: it
// would set them again.
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
	targets, _ := expand(k.files(), p.own) // what is wrong with it has been said
	for _, t := range targets {
		keys = append(keys, string(t.Key))
	}
	return keys
}

// outlast records that the values return after a reboot, if the file is ours and
// itself survives one.
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

// reload has all files applied, if anybody can do so, after recording every value
// that this is going to change. The Reloader knows nothing about routes learnt from
// IPv6 routers: what keeps them is set first, or there is no reload.
func (p *dropInPlan) reload(ctx context.Context, k Kernel, r *recorder) error {
	if p.reloader == nil {
		return p.reloadErr
	}
	own, err := k.diffBy(p.own, aReloader) // none, but for those that may not be set here
	if errors.Is(err, errRouter) {
		return err
	}
	if err := p.lookBeyond(k); err != nil { // our own values may have moved others
		return err
	}
	var beyond []Change
	for _, c := range p.beyond {
		beyond = append(beyond, c.Change)
	}
	others := newRecorder(r.journal) // the next boot sets them anyway
	if err := errors.Join(r.begin(ctx, k, own), others.begin(ctx, k, beyond)); err != nil {
		return err
	}
	guards := slices.DeleteFunc(slices.Concat(own, beyond), func(c Change) bool { return !c.guard })
	if err = k.writeAll(ctx, guards, map[Key]bool{}); err == nil {
		err = p.restart(ctx, k)
	}
	return errors.Join(err, r.end(ctx, k, own), others.end(ctx, k, beyond))
}

// restart reloads, unless there is a bus but no systemd on it, or it is not its turn
// yet.
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

// blame names the lines on whose account a reload failed: those that are invalid, and
// those whose values the kernel did not take.
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
			errs.Add(fmt.Errorf("%s:%d sets %s = %s, and it is %s", t.File, t.Line, t.Key, oneLine(t.Value), oneLine(c.Old)))
		}
	}
	return errs.Join()
}
