// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/internal/printable"
)

// settle determines what came of the writes that were begun, by this run or a killed one.
// What cannot be read stays begun.
func (b *Book) settle(ctx context.Context, s *sheet) error {
	var errs []error
	var begun []*record
	for _, r := range s.sorted() {
		if r.Intent != nil && b.kindOf(r.Kind) != nil {
			begun = append(begun, r)
		}
	}
	settled := slices.DeleteFunc(begun, func(r *record) bool { // first what was changed along: its own record may be begun too
		err := b.settleAlong(ctx, s, r)
		errs = append(errs, err)
		return err != nil
	})
	for _, r := range settled {
		errs = append(errs, b.settleOne(ctx, r))
	}
	return errors.Join(errs...)
}

// settleKilled settles what a killed run has begun, and saves that.
func (b *Book) settleKilled(ctx context.Context, s *sheet) (unsettled, err error) {
	for _, r := range s.records {
		if r.Intent != nil {
			return b.settle(ctx, s), b.save(s)
		}
	}
	return nil, nil
}

// settleOne determines how a write has left its object.
func (b *Book) settleOne(ctx context.Context, r *record) error {
	k, i := b.kindOf(r.Kind), r.Intent
	now, err := k.Read(ctx, string(r.Object))
	if err != nil {
		return fmt.Errorf("settle %s: %w", printable.Line(string(r.Object)), err)
	}
	written := b.isWritten(k, i.Was, i.To, now)
	if i.Replaces && !k.same(now, i.Was) {
		r.Original = i.Was
	}
	switch top := prevailing(r.Claims); {
	case written && i.Undo:
		r.Left, r.LeftAt = now.bare(), time.Now() // it is no state of an agent's
	case written:
		r.leave(now, time.Now())
	case top != nil && !i.Undo:
		top.Rewritten = false // what others have written there is not for the agent
	}
	r.Intent = nil
	return nil
}

// isWritten reports whether an object in state now was written, when it was to become what
// to says: if it is neither as before nor as meant, only a kind that rounds has written
// that.
func (b *Book) isWritten(k *Kind, was, to, now State) bool {
	switch {
	case k.met(now, Want{Kind: k, To: to}), k.same(now, to):
		return true
	case k.same(now, was):
		return false
	}
	return k.Rounds && !now.IsZero()
}

// settleAlong records the objects that a write has changed along, or puts them back where
// it has undone something.
func (b *Book) settleAlong(ctx context.Context, s *sheet, r *record) error {
	k, i := b.kindOf(r.Kind), r.Intent
	if i == nil || len(i.Along) == 0 {
		return nil
	}
	now, err := k.Read(ctx, string(r.Object))
	if err != nil {
		return fmt.Errorf("settle %s: %w", printable.Line(string(r.Object)), err)
	}
	written := b.isWritten(k, i.Was, i.To, now)
	var errs []error
	for _, side := range i.Along {
		errs = append(errs, b.settleSide(ctx, s, r, side, written))
	}
	return errors.Join(errs...)
}

// settleSide settles one object. If the cause looks as it was before, it may have been
// written all the same: the kernel has made of it what was there, or another program has
// since. Then the object itself shows it.
func (b *Book) settleSide(ctx context.Context, s *sheet, r *record, side along, written bool) error {
	k, name := b.kindOf(side.Kind), string(side.Object)
	if k == nil {
		return fmt.Errorf("%s %s: %w", side.Kind, printable.Line(name), ErrUnknownKind)
	}
	now, err := k.Read(ctx, name)
	if err != nil {
		return fmt.Errorf("settle %s: %w", printable.Line(name), err)
	}
	if o := s.records[k.id(name)]; o != nil && side.Replaces && !k.same(now, side.Was) {
		o.Original = side.Was
	}
	shows := !k.same(now, side.Was) && (b.kindOf(r.Kind).Rounds || k.same(now, side.To))
	switch {
	case now.IsZero() && k.Vanishes, !written && !shows:
		return nil
	case r.Intent.Undo:
		return b.putBack(ctx, s, k, side, now)
	}
	b.noteAlong(s, r, k, side, now)
	return nil
}

// noteAlong records that the write of r has changed an object along, which is in state now.
func (b *Book) noteAlong(s *sheet, r *record, k *Kind, side along, now State) {
	known := s.records[k.id(string(side.Object))] != nil
	o := s.of(k, string(side.Object), side.Was)
	switch {
	case o.Intent != nil && !k.same(now, side.To): // its own write is settled next
	case b.isWritten(k, side.Was, side.To, now):
		o.leave(now, time.Now())
	case !k.same(now, side.Was): // another program has written it since
		o.leave(side.To, time.Now())
	case !known:
		o.Left = now.bare()
	}
	o.remember(side.To)
	made := o.Left
	if o.Intent != nil {
		made = side.To
	}
	o.addCause(cause{ID: text(r.id), To: made.bare(), Boot: r.boot()})
}

// addCause records what changes the object along, for as long as that is recorded.
func (r *record) addCause(c cause) {
	r.Causes = append(slices.DeleteFunc(r.Causes, func(o cause) bool { return o.ID == c.ID }), c)
}

// putBack undoes what an undoing write has changed along. What follows the cause is as that
// has made it, and what another program has written since stays.
func (b *Book) putBack(ctx context.Context, s *sheet, k *Kind, side along, now State) error {
	o := s.records[k.id(string(side.Object))]
	changed := !k.same(now, side.Was)
	switch {
	case changed && !b.isWritten(k, side.Was, side.To, now):
		return nil
	case side.Back == nil:
		if changed && o != nil {
			o.Left, o.LeftAt = now.bare(), time.Now()
		}
		return nil
	case k.same(now, *side.Back):
		return nil
	}
	if err := k.Write(ctx, string(side.Object), b.writable(*side.Back)); err != nil {
		return err
	}
	if o == nil || k.same(*side.Back, side.Was) { // it may be another program's
		return nil
	}
	now, err := k.Read(ctx, string(side.Object))
	if err == nil {
		o.Left, o.LeftAt = now.bare(), time.Now()
	}
	return err
}
