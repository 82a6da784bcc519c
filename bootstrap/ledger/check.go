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

// Check returns what Apply would change. It changes nothing, settles nothing and needs no
// lock.
func (b *Book) Check(ctx context.Context, step string, wants Wants) (would Outcome, err error) {
	b = b.orAlone()
	err = b.look(ctx, func(s *sheet) error {
		a := b.application(s, step, b.targets(wants))
		for _, t := range a.targets {
			if err := a.check(ctx, t); err != nil {
				a.fail(t, err)
			}
		}
		if err := b.rival(ctx, s, step, wants); err != nil {
			a.errs = append(a.errs, err)
		}
		lines, drops := b.planned(ctx, s, b.unlisted(s, step, wants))
		would = a.done
		would.Denied, would.Changes = denied(a.targets), append(would.Changes, lines...)
		if len(a.errs)+len(would.Changes) == 0 {
			b.remember(s, step)
			would.Claims = drops || a.records(ctx)
		}
		return errors.Join(a.errs...)
	})
	return would, err
}

// records reports whether Apply would record something, although nothing changes: it records
// it in the sheet, and nowhere else.
func (a *application) records(ctx context.Context) bool {
	s, dry := a.sheet, *a.Book
	if len(s.head.Staging)+len(s.begun()) > 0 {
		return true
	}
	dry.store, a.Book = &unrecorded{}, &dry
	a.claim(ctx)
	changed, _, err := a.changed(s)
	return changed || err != nil
}

// check looks at one target as Apply would, and fails where that would. What it says
// beforehand are the things that cannot be mended afterwards: what will not come back, and
// what is not adopted.
func (a *application) check(ctx context.Context, t *target) error {
	if err := a.inspect(ctx, t); err != nil {
		return err
	}
	r := a.sheet.records[t.id]
	if a.isMet(t) {
		note(&a.done.Advice, a.adoptable(t, r))
		if other := a.sharedWith(r); other != "" {
			note(&a.done.Changes, fmt.Sprintf("keep %s also for this agent: agent %q has made it", printable.Line(t.Object), other))
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
	note(&a.done.Changes, t.Kind.describe(t.Object, t.now, t.To))
	if a.step != "" { // else a leaf asks, on the way to what it wants
		t.Kind.showDifference(ctx, t.Object, t.now, t.To, t.Secret || r.isSecret())
	}
	for _, side := range sides {
		note(&a.done.Changes, side.Change)
	}
	if r == nil || r.isOriginal(t.Kind, t.now) {
		note(&a.done.Advice, t.notBack())
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
func (t *target) notBack() string {
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
func (a *application) adoptable(t *target, r *record) string {
	if r != nil || t.adopts || t.NoAdopt || t.Loose || t.To.Type != typeFile || !a.first {
		return ""
	}
	return fmt.Sprintf("%s is present as wanted, and stays when the agent is undone, unless it is adopted", printable.Line(t.Object))
}

// sharedWith names another agent that has made the object, which this step has not claimed
// yet.
func (a *application) sharedWith(r *record) string {
	if r == nil || r.claim(a.ledger.Agent, a.step) != nil || !r.isMade(a.kinds[r.Kind]) {
		return ""
	}
	if top := a.ofOthers(r); top != nil {
		return top.Agent
	}
	return ""
}

// ofOthers is the claim that would prevail without this agent's. Nil: there is none.
func (b *Book) ofOthers(r *record) *claim {
	return prevailing(r.without(func(c claim) bool { return c.Agent == b.ledger.Agent }))
}

// target is a want, and what was seen of its object.
type target struct {
	Want
	id      string
	nameErr error // why the object's one name is not known
	now     State
	adopts  bool // where the step finds it as wanted when it first claims
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
		name, err := w.Kind.named(w.Object)
		w.Object = name
		adopts := b.ledger.Adopt && !w.NoAdopt && !w.Loose && w.To.Type == typeFile
		all = append(all, &target{Want: w, id: w.Kind.id(name), nameErr: err, adopts: adopts})
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
func (a *application) inspect(ctx context.Context, t *target) (err error) {
	if err = errors.Join(ctx.Err(), t.Kind.owns(t.Object), a.sheet.unreadable(t.id)); err != nil {
		return err
	}
	r := a.sheet.records[t.id]
	if r != nil && r.Kind != t.Kind.Name {
		return fmt.Errorf("%s: %w: it is recorded as a %s", printable.Line(t.Object), ErrConflict, r.Kind)
	}
	if r != nil && r.settled != nil && r.kind == t.Kind {
		t.now, r.settled = *r.settled, nil
	} else if t.now, err = t.Kind.Read(t.likely(ctx, r), t.Object); err != nil {
		return err
	}
	if t.nameErr != nil { // although it can be read now: it would be recorded twice
		return t.nameErr
	}
	if err := t.compare(ctx, r != nil && a.ofOthers(r) != nil); err != nil {
		return err
	}
	if err := a.outdated(ctx, t); err != nil {
		return err
	}
	if t.Ready != nil {
		if err := t.Ready(ctx); err != nil {
			return err
		}
	}
	return a.contested(ctx, t)
}

// outdated returns an error if a process that only keeps what another one has applied would
// change an object that the step does not claim any more, or claims otherwise by now. What may be
// others' (NoAdopt), and so depends on the node, is as it is there.
func (a *application) outdated(ctx context.Context, t *target) error {
	if !a.ledger.RepairOnly || t.NoAdopt || t.Loose || t.To.IsZero() || a.isMet(t) {
		return nil
	}
	r := a.sheet.records[t.id]
	if r == nil || r.claim(a.ledger.Agent, a.step) == nil {
		return fmt.Errorf("%w: %s is not recorded", ErrRevoked, printable.Line(t.Object))
	}
	own := r.claim(a.ledger.Agent, a.step)
	if err := t.hash(ctx); err != nil || t.Kind.agree(own.want(r, t.Kind), t.Want) {
		return err
	}
	return fmt.Errorf("%w: %s was applied otherwise since", ErrRevoked, printable.Line(t.Object))
}

// compare hashes content that is not known yet, where the object may have it already, or
// another agent wants the object. Otherwise it is read only when it is written.
func (t *target) compare(ctx context.Context, isShared bool) error {
	otherSize := t.To.Size > 0 && t.To.Size != t.now.Size
	isOther := t.now.SHA256 == "" || otherSize && !t.Loose
	if t.now.isLikely {
		t.To.Size, t.To.SHA256 = t.now.Size, t.now.SHA256
	}
	if isOther && !isShared {
		return nil
	}
	return t.hash(ctx)
}

// hash reads content that is not known yet.
func (t *target) hash(ctx context.Context) error {
	if t.To.Open == nil || t.To.SHA256 != "" {
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
func (a *application) isMet(t *target) bool {
	if r := a.sheet.records[t.id]; t.Rewritten && r != nil && !t.now.IsZero() {
		if own := a.standing(r, t.Want); own != nil && own.Rewritten {
			return t.now.Type == t.To.Type
		}
	}
	return t.Kind.matches(t.now, t.Want)
}

// contested returns an error if another agent prevails, and wants the object or one that is
// changed along to be different.
func (a *application) contested(ctx context.Context, t *target) error {
	if a.ledger.Override {
		return nil
	}
	if err := a.conflict(a.sheet.records[t.id], t.Want); err != nil || t.Kind.matches(t.now, t.Want) {
		return err
	}
	sides, err := t.Kind.along(ctx, t.Object, t.To)
	if err != nil {
		return err
	}
	for _, side := range sides {
		w := Want{Kind: side.Kind, Object: side.Object, To: side.To}
		if err := a.conflict(a.sheet.records[side.Kind.id(side.Object)], w); err != nil {
			return fmt.Errorf("%s would change it along: %w", printable.Line(t.Object), err)
		}
	}
	return nil
}

// conflict returns an error if the agent that prevails does not agree. A step that has
// overridden the others is not asked again. The steps of one agent never conflict: the last
// one prevails.
func (a *application) conflict(r *record, w Want) error {
	if r == nil || a.standing(r, w) != nil {
		return nil
	}
	top := a.ofOthers(r)
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
func (a *application) standing(r *record, w Want) *claim {
	own := r.claim(a.ledger.Agent, a.step)
	if own == nil || own != prevailing(r.Claims) || !w.Kind.same(own.To, w.To) {
		return nil
	}
	return own
}
