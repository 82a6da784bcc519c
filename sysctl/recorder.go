// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// The kinds of entries: values, whose Object is the dotted key, and drop-ins.
// Values that the kernel changes along with another are recorded like that one.
const (
	kindValue = "sysctl/value"
	kindFile  = "sysctl/file"
)

// recorder records values before they change. Without a journal it records nothing.
type recorder struct {
	journal *journal.Journal
	boot    string // the boot whose end undoes the noted values; empty: none does
	begun   []begun
}

// begun is an entry that was begun, and its cause.
type begun struct {
	journal.Entry
	cause Key
	found string         // the value
	prior *journal.Entry // of an earlier run; nil: none
}

func newRecorder(j *journal.Journal) *recorder { return &recorder{journal: j, boot: j.Boot()} }

func state(value string) journal.State { return journal.State{Type: "value", Value: value} }

// left reports whether, according to e, a value is as the step left it. Until e is
// completed, that is the intended value, or the one left the time before.
func left(e journal.Entry, now string) bool {
	at, _ := keyIn(e).path()
	return sameValue(at, now, e.After.Value) || e.Was != nil && sameValue(at, now, e.Was.Value)
}

// settled returns e completed, if e was only begun and the value is as the step
// left it: beginning e again would lose that.
func settled(e journal.Entry, now string) (journal.Entry, bool) {
	if e.Done || !left(e, now) {
		return e, false
	}
	e.After, e.Was, e.Done = state(now), nil, true
	return e, true
}

// begin records the values that changes will alter, first those that the kernel
// alters by itself.
func (r *recorder) begin(ctx context.Context, k Kernel, changes []Change) error {
	if r.journal == nil {
		return nil
	}
	r.begun = nil
	own := map[Key]bool{}
	for _, c := range changes {
		own[c.Key] = true
	}
	for _, c := range changes {
		if err := r.addSides(ctx, k, c, own); err != nil {
			return fmt.Errorf("record what %s changes: %w", c.Key, err)
		}
	}
	for _, c := range changes {
		if err := r.add(ctx, c.Key, c.Key, c.Old, c.New); err != nil {
			return err
		}
	}
	var entries, finished []journal.Entry
	for _, b := range r.begun {
		if entries = append(entries, b.Entry); b.prior != nil {
			if e, settles := settled(*b.prior, b.found); settles {
				*b.prior = e
				finished = append(finished, e)
			}
		}
	}
	if err := r.journal.Complete(ctx, finished...); err != nil {
		return err
	}
	return r.journal.Begin(ctx, entries...)
}

// add adds the entry of key. It keeps an earlier run's record: the first value, and
// that no reboot undoes the change.
func (r *recorder) add(ctx context.Context, key, cause Key, found, meant string) error {
	b := begun{cause: cause, found: found, Entry: valueEntry(key, state(found), meant, r.boot)}
	prior, known, err := r.journal.Lookup(ctx, kindValue, object(key))
	if err != nil {
		return err
	}
	if known {
		b.prior, b.Before = &prior, prior.Before
		if prior.Boot == "" {
			b.Boot = ""
		}
	}
	r.begun = append(r.begun, b)
	return nil
}

// addSides adds the keys that c drags along, except those in own, and adds them to
// own.
func (r *recorder) addSides(ctx context.Context, k Kernel, c Change, own map[Key]bool) error {
	at, err := c.Key.path()
	if err != nil {
		return err
	}
	paths, err := sides(k.files(), at)
	if err != nil {
		return err
	}
	for _, p := range paths {
		key := keyOf(p)
		if own[key] {
			continue
		}
		value, err := k.read(p)
		if errors.Is(err, fs.ErrNotExist) { // the link is gone
			continue
		}
		if err != nil {
			return err
		}
		own[key] = true
		if err := r.add(ctx, key, c.Key, value, dragged(p, at, c.New)); err != nil {
			return err
		}
	}
	return nil
}

// end records the results of the changes. For a value that did not change, the
// record of an earlier run remains; the entry of a value that cannot be read
// remains begun.
func (r *recorder) end(ctx context.Context, k Kernel, changes []Change) error {
	if r.journal == nil {
		return nil
	}
	missed := map[Key]bool{} // for certain
	for _, c := range changes {
		at, _ := c.Key.path()
		now, err := k.lookAgain(at, c.Old)
		missed[c.Key] = err == nil && !sameValue(at, now, c.New) || errors.Is(err, fs.ErrNotExist)
	}
	var done, dropped []journal.Entry
	var errs []error
	for _, b := range r.begun {
		at, _ := keyIn(b.Entry).path()
		now, err := k.lookAgain(at, b.Before.Value)
		gone := errors.Is(err, fs.ErrNotExist)
		moved := !gone && now != b.found
		switch {
		case err != nil && !gone:
			errs = append(errs, fmt.Errorf("record the resulting value: %w", err))
		case moved || !gone && b.prior == nil && !missed[b.cause]:
			b.After = state(now)
			done = append(done, b.Entry)
		case b.prior == nil:
			dropped = append(dropped, b.Entry)
		case b.prior.Done:
			done = append(done, *b.prior)
		}
	}
	errs = append(errs, r.journal.Complete(ctx, done...), r.journal.Forget(ctx, dropped...))
	return errors.Join(errs...)
}

// outlast records that the values set, or about to be set, return at the next boot,
// since a file of ours sets as. So do the values that the kernel changes along with
// them.
func (r *recorder) outlast(ctx context.Context, k Kernel, as []assignment) error {
	r.boot = ""
	targets, _ := expand(k.files(), as) // its errors have been reported
	var lasting []journal.Entry
	brought := map[string]bool{}
	for _, t := range targets {
		along, err := sides(k.files(), t.path)
		if err != nil {
			return err
		}
		for _, p := range append(along, t.path) {
			if brought[p] {
				continue
			}
			brought[p] = true
			e, known, err := r.journal.Lookup(ctx, kindValue, object(keyOf(p)))
			if err != nil {
				return err
			}
			if known && e.Boot != "" {
				lasting = append(lasting, e)
			}
		}
	}
	return r.journal.SurvivesReboot(ctx, lasting...)
}
