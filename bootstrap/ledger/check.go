// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"

	"github.com/slipway-dev/slipway/internal/mountinfo"
	"github.com/slipway-dev/slipway/internal/printable"
)

// Look is what a step would change, and what a person should know beforehand.
type Look struct {
	Changes []string
	Advice  []string
	Claims  bool // Apply would record something, even if nothing changes
	// Denied says which of the changes this process is not permitted to make. It is no error
	// of Check's: others may look.
	Denied error
}

// Check returns what Apply would change. It changes nothing, settles nothing and needs no
// lock.
func (b *Book) Check(ctx context.Context, step string, wants Wants) (look Look, err error) {
	b = b.orAlone()
	err = b.look(ctx, func(s *sheet) error {
		look = Look{}
		var errs []error
		targets := b.targets(wants)
		for _, t := range targets {
			err := b.checkOne(ctx, s, step, t, &look)
			if t.failed = err != nil; t.failed && t.MayFail {
				note(&look.Advice, err.Error())
			} else {
				errs = append(errs, err)
			}
		}
		look.Denied = denied(targets)
		lines, drops := b.planned(ctx, s, b.unlisted(s, step, wants))
		look.Changes = append(look.Changes, lines...)
		if err := errors.Join(errs...); err != nil || len(look.Changes) > 0 {
			return err
		}
		look.Claims = drops || b.records(ctx, s, step, targets)
		return nil
	})
	return look, err
}

// records reports whether Apply would record something, although nothing changes: it records
// it in s, and nowhere else.
func (b *Book) records(ctx context.Context, s *sheet, step string, targets []*target) bool {
	isBegun := func(r *record) bool { return r.Intent != nil }
	if len(s.head.Staging) > 0 || slices.ContainsFunc(s.sorted(), isBegun) {
		return true
	}
	dry := *b
	dry.store = &unrecorded{}
	dry.application(s, step, targets).claim(ctx)
	if s.tidy(); s.isEmpty() {
		return false
	}
	s.tidyAgents()
	text, err := s.text()
	return err != nil || string(text) != b.saved
}

// checkOne looks at one target as Apply would, and fails where that would. What it says
// beforehand are the things that cannot be mended afterwards: what will not come back, and
// what is not adopted.
func (b *Book) checkOne(ctx context.Context, s *sheet, step string, t *target, look *Look) error {
	if err := b.inspect(ctx, s, step, t); err != nil {
		return err
	}
	r := s.records[t.id]
	if b.isMet(r, step, t) {
		note(&look.Advice, b.adoptable(s, step, t, r))
		if other := b.sharedWith(r, step); other != "" {
			line := fmt.Sprintf("keep %s also for this agent: agent %q has made it", printable.Line(t.Object), other)
			look.Changes = append(look.Changes, line)
		}
		return nil
	}
	if err := t.Kind.permission(ctx, t.Object); err != nil && !t.MayFail {
		t.denied = fmt.Errorf("%s: %w", printable.Line(t.Object), err)
	}
	sides, err := t.Kind.along(ctx, t.Object, t.To)
	if err != nil {
		return err
	}
	note(&look.Changes, t.Kind.describe(t.Object, t.now, t.To))
	for _, side := range sides {
		note(&look.Changes, side.Change)
	}
	if r == nil || r.isOriginal(t.Kind, t.now) {
		note(&look.Advice, b.notBack(t))
	}
	return nil
}

// denied joins what is denied. A directory is left out if what comes in it, or is made of it, is
// denied for the same cause: that one's kind has its own words for it.
func denied(targets []*target) (err error) {
	for i, t := range targets {
		isSame := func(o *target) bool {
			return o.denied != nil && mountinfo.Below(o.Object, t.Object) && errors.Is(o.denied, syscall.EROFS) == errors.Is(t.denied, syscall.EROFS)
		}
		if t.denied != nil && (t.To.Type != typeDir || !slices.ContainsFunc(targets[i+1:], isSame)) {
			err = errors.Join(err, t.denied)
		}
	}
	return err
}

// note adds a line, once. An empty one says nothing.
func note(lines *[]string, line string) {
	if line != "" && !slices.Contains(*lines, line) {
		*lines = append(*lines, line)
	}
}

// notBack says why undoing will not bring back what a step replaces.
func (b *Book) notBack(t *target) string {
	if t.now.IsZero() {
		return ""
	}
	why := t.Kind.lost(t.Object, t.now)
	if t.Secret && t.now.SHA256 != "" {
		why = "no copy of what it replaces is kept, as asked"
	}
	if why == "" {
		return ""
	}
	return fmt.Sprintf("%s will not come back as it is: %s", printable.Line(t.Object), why)
}

// adoptable says that an object could be adopted.
func (b *Book) adoptable(s *sheet, step string, t *target, r *record) string {
	if r != nil || t.Adopt || t.NoAdopt || t.Loose || t.To.Type != typeFile || s.claimedBefore(b.ledger.Agent, step) {
		return ""
	}
	return fmt.Sprintf("%s is present as wanted, and stays when the agent is undone, unless it is adopted", printable.Line(t.Object))
}

// sharedWith names another agent that has made the object, which this step has not claimed
// yet.
func (b *Book) sharedWith(r *record, step string) string {
	if r == nil || r.claim(b.ledger.Agent, step) != nil || !r.isMade(b.kinds[r.Kind]) {
		return ""
	}
	if top := b.ofOthers(r); top != nil {
		return top.Agent
	}
	return ""
}

// ofOthers is the claim that would prevail without this agent's. Nil: there is none.
func (b *Book) ofOthers(r *record) *Claim {
	return prevailing(r.without(func(c Claim) bool { return c.Agent == b.ledger.Agent }))
}

// target is a want, and what was seen of its object.
type target struct {
	Want
	id      string
	now     State
	failed  bool
	denied  error
	written bool // in this run, or about to be
	tried   bool // it was its turn
	waits   bool // for the next pass
	// verified: after that, it was seen as wanted. If it is not any more, a later write has
	// changed it along.
	verified bool
	isNew    bool // the step did not claim it before
	staged   *Staged
}

// targets prepares wants: each object has its one name, and its kind is known from here on.
func (b *Book) targets(wants Wants) (all []*target) {
	for _, w := range wants.List {
		b.Learn(w.Kind)
		w.Object = w.Kind.canonical(w.Object)
		w.Adopt = w.Adopt || b.ledger.Adopt && !w.NoAdopt && w.To.Type == typeFile
		all = append(all, &target{Want: w, id: w.Kind.id(w.Object)})
	}
	b.Learn(wants.Kinds...)
	return all
}

// Learn makes kinds known, for settling and undoing their records. The first one of a name
// stays: steps that use a kind differ in nothing that its records depend on.
func (b *Book) Learn(kinds ...*Kind) {
	for _, k := range kinds {
		if b.kinds[k.Name] == nil {
			b.kinds[k.Name] = k
		}
	}
}

// inspect looks at the target's object, and returns an error if it must not be changed.
func (b *Book) inspect(ctx context.Context, s *sheet, step string, t *target) (err error) {
	if err = errors.Join(ctx.Err(), t.Kind.owns(t.Object), s.unreadable(t.id)); err != nil {
		return err
	}
	r := s.records[t.id]
	if r != nil && r.Kind != t.Kind.Name {
		return fmt.Errorf("%s: %w: it is recorded as a %s", printable.Line(t.Object), ErrConflict, r.Kind)
	}
	if r != nil && r.settled != nil {
		t.now, r.settled = *r.settled, nil
	} else if t.now, err = t.Kind.Read(ctx, t.Object); err != nil {
		return err
	}
	if err := t.compare(ctx, r != nil && b.ofOthers(r) != nil); err != nil {
		return err
	}
	if t.Ready != nil {
		if err := t.Ready(ctx); err != nil {
			return err
		}
	}
	return b.contested(ctx, s, step, t)
}

// compare hashes content that is not known yet, where the object may have it already, or
// another agent wants the object. Otherwise it is read only when it is written.
func (t *target) compare(ctx context.Context, isShared bool) error {
	otherSize := t.To.Size > 0 && t.To.Size != t.now.Size
	isOther := t.now.SHA256 == "" || otherSize && !t.Loose
	if t.To.Open == nil || t.To.SHA256 != "" || isOther && !isShared {
		return nil
	}
	wanted, err := t.To.Open()
	if err != nil {
		return err
	}
	defer wanted.Close()
	return copyContent(ctx, io.Discard, wanted, &t.To)
}

// isMet reports whether the object is as the step wants it. What others rewrite for the
// agent is once the step has made it.
func (b *Book) isMet(r *record, step string, t *target) bool {
	if t.Rewritten && r != nil && !t.now.IsZero() {
		if own := b.standing(r, t.Want, step); own != nil && own.Rewritten {
			return t.now.Type == t.To.Type
		}
	}
	return t.Kind.met(t.now, t.Want)
}

// contested returns an error if another agent prevails, and wants the object or one that is
// changed along to be different.
func (b *Book) contested(ctx context.Context, s *sheet, step string, t *target) error {
	if b.ledger.Override {
		return nil
	}
	if err := b.conflict(s.records[t.id], t.Want, step); err != nil || t.Kind.met(t.now, t.Want) {
		return err
	}
	sides, err := t.Kind.along(ctx, t.Object, t.To)
	if err != nil {
		return err
	}
	for _, side := range sides {
		w := Want{Kind: side.Kind, Object: side.Object, To: side.To}
		if err := b.conflict(s.records[side.Kind.id(side.Object)], w, step); err != nil {
			return fmt.Errorf("%s would change it along: %w", printable.Line(t.Object), err)
		}
	}
	return nil
}

// conflict returns an error if the agent that prevails does not agree. A step that has
// overridden the others is not asked again. The steps of one agent never conflict: the last
// one prevails.
func (b *Book) conflict(r *record, w Want, step string) error {
	if r == nil || b.standing(r, w, step) != nil {
		return nil
	}
	top := b.ofOthers(r)
	if top == nil || w.Kind.agree(top.want(r, w.Kind), w) {
		return nil
	}
	return fmt.Errorf("%s: %w: agent %q%s: undo or release that agent, change one of the two, or override it",
		printable.Line(w.Object), ErrConflict, top.Agent, difference(w.Object, top.To, w.To))
}

// difference says in which value two agents differ, if it is one.
func difference(object string, theirs, ours State) string {
	if theirs.Value == ours.Value {
		return ""
	}
	return fmt.Sprintf(" has %s, and this one wants %s",
		printable.Line(printable.Masked(object, theirs.Value)), printable.Line(printable.Masked(object, ours.Value)))
}

// standing returns the step's claim if it prevails, and wants what the step wants now.
func (b *Book) standing(r *record, w Want, step string) *Claim {
	own := r.claim(b.ledger.Agent, step)
	if own == nil || own != prevailing(r.Claims) || !w.Kind.same(own.To, w.To) {
		return nil
	}
	return own
}
