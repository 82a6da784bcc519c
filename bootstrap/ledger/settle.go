// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/printable"
)

// settle determines what came of the writes that were begun, by this run or a killed one.
// There is one way for both, so that each run proves what a killed one relies on. What cannot
// be read stays begun.
func (b *Book) settle(ctx context.Context, s *sheet) error {
	var errs []error
	var settled []*record
	for _, r := range s.sorted() { // first what was changed along: its own record may be begun too
		if r.Intent == nil || b.kindOf(r) == nil {
			continue
		}
		err := b.settleAlong(ctx, s, r)
		if errs = append(errs, err); err == nil {
			settled = append(settled, r)
		}
	}
	for _, r := range settled {
		_, err := b.settleOne(ctx, r)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// kindOf is the kind that reads and writes the record's object: of what is wanted now, if a step
// lists it, since kinds of one name may differ in what they remember.
func (b *Book) kindOf(r *record) *Kind { return cmp.Or(r.kind, b.kinds[r.Kind]) }

// settleKilled settles what a killed run has begun, removes what it was preparing, and saves
// that.
func (b *Book) settleKilled(ctx context.Context, s *sheet) (unsettled, err error) {
	ids := s.begun()
	if len(ids)+len(s.head.Staging) == 0 {
		return nil, nil
	}
	var errs []error
	if s.place == (place{}) {
		ids, s.head.Staging = append(ids, convert[string](s.head.Staging)...), nil
	}
	for _, id := range ids {
		errs = append(errs, b.sweep(ctx, id))
	}
	errs = append(errs, b.settle(ctx, s))
	return errors.Join(errs...), b.save(s)
}

// begun lists the objects whose write was begun.
func (s *sheet) begun() (ids []string) {
	for id, r := range s.records {
		if r.Intent != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// sweep removes what a killed write has left beside an object.
func (b *Book) sweep(ctx context.Context, id string) error {
	for _, k := range b.kinds {
		if object, isOf := strings.CutPrefix(id, k.id("")); isOf && k.Sweep != nil && k.owns(object) == nil {
			return k.Sweep(ctx, object)
		}
	}
	return nil
}

// outcome looks at an object whose write was begun, and reports whether it was written.
func (b *Book) outcome(ctx context.Context, r *record) (now State, written bool, err error) {
	k := b.kindOf(r)
	if now, err = k.Read(ctx, string(r.Object)); err != nil {
		return now, false, fmt.Errorf("settle %s: %w", printable.Line(string(r.Object)), err)
	}
	return now, b.isWritten(k, r.Intent.Was, r.Intent.To, now), nil
}

// settleOne determines how a write has left its object.
func (b *Book) settleOne(ctx context.Context, r *record) (written bool, err error) {
	now, written, err := b.outcome(ctx, r)
	if err != nil {
		return false, err
	}
	i := r.Intent
	switch top := prevailing(r.Claims); {
	case written && i.Undo:
		r.Left, r.LeftAt = now.bare(), time.Now() // it is no state of an agent's
	case written:
		r.leave(now)
	case b.kindOf(r).same(now, r.Left):
		r.LeftAt = time.Now()
	case top != nil && !i.Undo:
		top.Rewritten = false // what others have written there is not for the agent
	}
	r.Intent, r.settled = nil, &now
	return written, nil
}

// isWritten reports whether an object in state now was written, when it was to become what
// to says: if it is neither as before nor as meant, only a kind that rounds has written
// that.
func (b *Book) isWritten(k *Kind, was, to, now State) bool {
	switch {
	case k.matches(now, Want{Kind: k, To: to}), k.same(now, to):
		return true
	case k.same(now, was):
		return false
	}
	return now.Half || k.Rounds && !now.IsZero()
}

// settleAlong records the objects that a write has changed along, or puts them back where
// it has undone something.
func (b *Book) settleAlong(ctx context.Context, s *sheet, r *record) error {
	if len(r.Intent.Along) == 0 {
		return nil
	}
	_, written, err := b.outcome(ctx, r)
	if err != nil {
		return err
	}
	var errs []error
	for _, side := range r.Intent.Along {
		errs = append(errs, b.settleSide(ctx, s, r, side, written))
	}
	return errors.Join(errs...)
}

// settleSide settles one object. If the cause looks as it was before, it may have been
// written all the same: the kernel has made of it what was there, or another program has
// since. Then the object itself shows it.
func (b *Book) settleSide(ctx context.Context, s *sheet, r *record, side along, written bool) error {
	k, name := b.kinds[side.Kind], string(side.Object)
	if k == nil {
		return fmt.Errorf("%s %s: %w", side.Kind, printable.Line(name), errUnknownKind)
	}
	if err := k.owns(name); err != nil {
		return err
	}
	now, err := k.Read(ctx, name)
	if err != nil {
		return fmt.Errorf("settle %s: %w", printable.Line(name), err)
	}
	shows := !k.same(now, side.Was) && (b.kindOf(r).Rounds || k.same(now, side.To))
	switch {
	case now.IsZero() && k.Rounds, !written && !shows:
		return nil
	case r.Intent.Undo:
		return b.putBack(ctx, s, k, side, now)
	}
	b.noteAlong(s, r, k, side, now)
	return nil
}

// noteAlong records that the write of r has changed an object along, which is in state now. An
// object without a record gets one, in which it is as it was before the write. Whatever it is
// now, the state that the write gave it is an agent's.
func (b *Book) noteAlong(s *sheet, r *record, k *Kind, side along, now State) {
	o := s.of(k, string(side.Object), side.Was)
	switch {
	case o.Intent != nil && !k.same(now, side.To): // its own write is settled next
	case b.isWritten(k, side.Was, side.To, now):
		o.leave(now)
	case !k.same(now, side.Was): // another program has written it since
		o.leave(side.To)
	}
	o.remember(side.To)
	made := o.Left
	if o.Intent != nil {
		made = side.To
	}
	o.addCause(r, made, side.Boot)
}

// putBack undoes what an undoing write has changed along: another agent wants the object
// otherwise, or another program has made it. What follows the cause is as that has made it,
// and what another program has written since stays.
func (b *Book) putBack(ctx context.Context, s *sheet, k *Kind, side along, now State) (err error) {
	if !k.same(now, side.Was) && !b.isWritten(k, side.Was, side.To, now) {
		return nil
	}
	if side.Back != nil && !k.same(now, *side.Back) {
		if err := k.Write(ctx, string(side.Object), b.writable(*side.Back).onto(now)); err != nil {
			return err
		}
		if now, err = k.Read(ctx, string(side.Object)); err != nil {
			return err
		}
	}
	if o := s.records[side.id()]; o != nil && !k.same(now, side.Was) { // else it may be another program's
		o.Left, o.LeftAt = now.bare(), time.Now()
	}
	return nil
}

// beginAlong lists the objects that a write changes along, with what they are now. None gets
// a record before it is known that the write has happened.
func (b *Book) beginAlong(ctx context.Context, s *sheet, k *Kind, object string, to State) (all []along, err error) {
	sides, err := k.along(ctx, object, to)
	if err != nil {
		return nil, err
	}
	for _, side := range sides {
		b.Learn(side.Kind)
		now, err := side.Kind.Read(ctx, side.Object)
		if err != nil {
			return nil, err
		}
		if now.IsZero() && side.Kind.Rounds {
			continue // it has just gone
		}
		was, err := b.keep(ctx, now, false)
		if err != nil {
			return nil, err
		}
		if r := s.records[side.Kind.id(side.Object)]; r != nil && r.isOriginal(side.Kind, now) {
			r.replaceOriginal(side.Kind, now, was)
		}
		a := along{
			Kind: side.Kind.Name, Space: side.Kind.space(), Object: text(side.Object), Was: was, To: side.To.bare(), change: side.Change,
		}
		if side.Boot {
			a.Boot = b.boot
		}
		all = append(all, a)
	}
	return all, nil
}
