// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/slipway-dev/slipway/internal/printable"
)

// passes is how often Apply goes over the objects: one write can undo another, and what is
// staged in a new directory waits until that is made.
const passes = 3

// Outcome is what a step has done or, as [Book.Check] returns it, would do.
type Outcome struct {
	Changes []string
	Advice  []string // what a person should know, such as what does not work and need not
	Adopted []string // objects that were found as wanted, and count as made from now on
	Undone  []Undone // objects that the step no longer wants

	// Of a check: whether Apply would record something, even if nothing changes; and which of
	// the changes this process is not permitted to make, which is no error, since others may
	// look.
	Claims bool
	Denied error
}

// application is one run of Apply.
type application struct {
	*Book
	sheet   *sheet
	step    string
	targets []*target
	byID    map[string]*target
	before  map[string][]*target // by ID: those that an object needs
	first   bool                 // the step has never claimed before
	atOnce  bool                 // all that differs is written, or nothing, and in order
	waiting bool                 // a target waits for the next pass
	done    Outcome
	errs    []error
}

// Apply brings the objects to the wanted states, in order, and records them. An object that
// fails stops those that need it, and no others. Before anything is written, all objects
// were looked at, and all that is about to be written is recorded.
func (b *Book) Apply(ctx context.Context, step string, wants Wants) (Outcome, error) {
	b = b.orAlone()
	s, err := b.load()
	if err != nil {
		return Outcome{}, err
	}
	a := b.application(s, step, b.targets(wants))
	a.atOnce = wants.AtOnce
	if _, err := b.settleKilled(ctx, s); err != nil { // what cannot be settled cannot be looked at below, either
		return Outcome{}, err
	}
	todo := a.look(ctx)
	for pass := 0; len(todo) > 0 && pass < passes && ctx.Err() == nil; pass++ {
		if err := a.write(ctx, todo); err != nil || a.abandons() {
			return a.done, errors.Join(append(a.errs, err)...)
		}
		todo = a.look(ctx)
	}
	for _, t := range todo {
		a.fail(t, refused(t))
	}
	a.claim(ctx)
	if err := b.save(s); err != nil {
		return a.done, errors.Join(append(a.errs, err)...)
	}
	a.errs = append(a.errs, a.undoUnlisted(ctx, wants), ctx.Err())
	b.remember(s, step)
	return a.done, errors.Join(a.errs...)
}

func (b *Book) application(s *sheet, step string, targets []*target) *application {
	a := &application{
		Book: b, sheet: s, step: step, targets: targets, first: !s.claimedBefore(b.ledger.Agent, step),
		byID: map[string]*target{}, before: map[string][]*target{},
	}
	for _, t := range targets {
		a.byID[t.id] = t
		if r := s.records[t.id]; r != nil && r.Kind == t.Kind.Name {
			r.kind = t.Kind
		}
	}
	for _, t := range targets {
		for _, id := range t.Needs {
			if o := a.byID[id]; o != nil {
				a.before[t.id] = append(a.before[t.id], o)
			}
		}
		if t.Again != "" {
			a.before[t.Again] = append(a.before[t.Again], t)
		}
	}
	return a
}

// refused is the error for an object that is not as wanted although it was written.
func refused(t *target) error {
	return fmt.Errorf("%s: %w", t.Kind.describe(t.Object, t.now, t.To), ErrRefused)
}

// fail records a target's first failure: the others go on.
func (a *application) fail(t *target, err error) {
	switch {
	case t.failed:
	case t.MayFail:
		note(&a.done.Advice, err.Error())
	default:
		a.errs = append(a.errs, err)
	}
	t.failed = true
}

// look returns the targets that are not as wanted. After a pass it verifies what was
// written: the kernel may store a value otherwise, or refuse it silently.
func (a *application) look(ctx context.Context) (todo []*target) {
	a.waiting = false
	for _, t := range a.targets {
		if t.waits = false; t.failed {
			continue
		}
		if err := a.inspect(ctx, t); err != nil {
			a.fail(t, err)
			continue
		}
		switch {
		case a.isMet(t):
		case t.written && !t.verified && t.Kind.same(t.now, a.sheet.records[t.id].Left): // to write it again changes nothing
			a.fail(t, refused(t))
		default:
			todo = append(todo, t)
		}
	}
	return todo
}

// abandons reports whether nothing more is written, since one of the objects cannot be.
func (a *application) abandons() bool {
	return a.atOnce && slices.ContainsFunc(a.targets, func(t *target) bool { return t.failed && !t.MayFail })
}

// write records what is about to be written, writes it, and records what it has become.
func (a *application) write(ctx context.Context, todo []*target) error {
	if a.abandons() {
		return nil
	}
	if err := a.announce(todo); err != nil {
		return err
	}
	changes := len(a.done.Changes)
	defer func() {
		for _, t := range todo {
			t.discard()
		}
	}()
	todo = slices.DeleteFunc(slices.Clone(todo), func(t *target) bool { return !a.prepare(ctx, t) })
	a.sheet.head.Staging = nil
	if a.abandons() {
		a.done.Changes = a.done.Changes[:changes] // nothing of it is saved
		for _, t := range todo {
			t.discard()
		}
		return a.takeBack(ctx)
	}
	if err := a.save(a.sheet); err != nil {
		return err
	}
	for _, t := range todo {
		if a.abandons() {
			t.failed = true // the first failure says why
		} else if err := a.writeOne(ctx, t); err != nil && !a.yields(t, err) {
			a.fail(t, fmt.Errorf("%s: %w", t.Kind.describe(t.Object, t.now, t.To), err))
		}
		t.tried = true
	}
	settleErr := a.settle(ctx, a.sheet)
	for _, t := range todo {
		a.dropUnmade(t)
	}
	return errors.Join(settleErr, a.save(a.sheet))
}

// announce says in the file beside which objects something is about to be prepared, so that it
// goes if the run is killed. What is inside a container goes with that.
func (a *application) announce(todo []*target) error {
	for _, t := range todo {
		if t.needsStage() && t.Kind.Sweep != nil && a.place == (place{}) {
			a.sheet.head.Staging = append(a.sheet.head.Staging, text(t.id))
		}
	}
	if len(a.sheet.head.Staging) == 0 {
		return nil
	}
	return a.save(a.sheet)
}

// takeBack undoes what earlier passes have made for what is now abandoned, such as
// directories.
func (a *application) takeBack(ctx context.Context) error {
	s, err := a.load()
	if err != nil {
		return err
	}
	s.head.Staging = nil
	works := a.works(s, func(r *record, c claim) bool {
		t := a.byID[r.id]
		return t != nil && t.isNew && c.is(a.ledger.Agent, a.step)
	})
	_, err = a.giveUp(s, works).run(ctx)
	if len(works) > 0 {
		a.done.Changes = nil
	}
	return errors.Join(err, a.save(s))
}

// yields reports whether another program has made an object, with which the step is content
// whatever it is, since it was looked at. It is theirs, and is looked at again.
func (a *application) yields(t *target, err error) bool {
	r := a.sheet.records[t.id]
	if !errors.Is(err, fs.ErrExist) || !t.Loose || !t.now.IsZero() || r == nil || len(r.Claims) > 1 || len(r.Causes) > 0 || !t.isNew {
		return false
	}
	delete(a.sheet.records, t.id)
	t.written = false
	return true
}

// dropUnmade drops the claim of a target that could not be written, and was none of the
// step's before: another agent is not to be stopped by it.
func (a *application) dropUnmade(t *target) {
	r := a.sheet.records[t.id]
	if t.failed && t.isNew && r != nil && r.Intent == nil && !r.isMade(t.Kind) {
		r.Claims = r.without(func(c claim) bool { return c.is(a.ledger.Agent, a.step) })
	}
}

// prepare stages a target and begins its record. It reports false if the target is not to
// be written in this pass. Permission is asked first: what is staged writes already, beside
// the object.
func (a *application) prepare(ctx context.Context, t *target) bool {
	if t.waits = a.waiting && a.atOnce || slices.ContainsFunc(a.before[t.id], func(o *target) bool { return o.waits }); t.waits {
		return false
	}
	err := t.Kind.permission(ctx, t.Object)
	if err == nil {
		err = a.stage(ctx, t)
	}
	if errors.Is(err, fs.ErrNotExist) && a.comesWith(t) {
		t.waits, a.waiting = true, true // its directory is made in this pass
		return false
	}
	if err == nil && a.isMet(t) { // which is known only now
		t.discard()
		return false
	}
	if err == nil {
		err = a.begin(ctx, t)
	}
	if err != nil {
		t.discard()
		a.fail(t, fmt.Errorf("%s: %w", t.Kind.describe(t.Object, t.now, t.To), err))
	}
	return err == nil
}

// stage prepares content that is not known yet beside its object.
func (a *application) stage(ctx context.Context, t *target) (err error) {
	if !t.needsStage() {
		return nil
	}
	if t.staged, err = t.Kind.Stage(ctx, t.Object, t.To.onto(t.now)); err == nil {
		t.To = t.staged.State
	}
	return err
}

func (t *target) needsStage() bool { return t.Kind.Stage != nil && t.To.Open != nil && t.staged == nil }

// discard removes what was staged and not committed.
func (t *target) discard() {
	if t.staged != nil {
		t.staged.Discard()
	}
	t.staged = nil
}

// comesWith reports whether this step is about to make something that the target needs.
func (a *application) comesWith(t *target) bool {
	return slices.ContainsFunc(append(above(t.id), t.Needs...), func(id string) bool {
		o := a.byID[id]
		return o != nil && o != t && !o.failed && !o.To.IsZero()
	})
}

// begin records the target's object as it is and as it is about to be. If it changes an
// object along whose record is damaged, that one's original could not be told any more.
func (a *application) begin(ctx context.Context, t *target) error {
	sides, err := a.beginAlong(ctx, a.sheet, t.Kind, t.Object, t.To)
	for _, side := range sides {
		err = errors.Join(err, a.sheet.unreadable(side.id()))
	}
	if err != nil {
		return err
	}
	r, err := a.recordOf(ctx, t)
	if err != nil {
		return err
	}
	if r.Intent != nil {
		return errors.New("what a killed run has begun cannot be settled, or it is listed twice")
	}
	if err := a.claimFor(ctx, r, t, a.claimOf(t)); err != nil {
		return err
	}
	r.kind = t.Kind
	r.Intent, t.written = &intent{To: t.To.bare(), Was: t.now.bare(), Along: sides}, true
	note(&a.done.Changes, t.Kind.describe(t.Object, t.now, t.To))
	for _, side := range sides {
		note(&a.done.Changes, side.change)
	}
	return nil
}

// claimFor makes c the step's claim on a target.
func (a *application) claimFor(ctx context.Context, r *record, t *target, c claim) error {
	if err := a.keepOverridden(ctx, r, t); err != nil {
		return err
	}
	t.isNew = t.isNew || r.claim(c.Agent, a.step) == nil
	r.Kept = ""
	r.leaveRewritten(t.Kind, t.now)
	r.put(t.Kind, c)
	r.remember(r.claim(c.Agent, c.Step).To)
	return nil
}

// recordOf returns the record of a target, in which the present state takes the place of the
// original if it is one: before the write, since afterwards a killed run could not tell.
func (a *application) recordOf(ctx context.Context, t *target) (*record, error) {
	r := a.sheet.records[t.id]
	switch {
	case r != nil && (t.OwnCopy || !r.isOriginal(t.Kind, t.now)):
		return r, nil
	case t.OwnCopy:
		return a.sheet.of(t.Kind, t.Object, State{}), nil
	}
	original, err := a.keep(ctx, t.now, t.Secret)
	switch {
	case err != nil:
		return nil, fmt.Errorf("keep the original: %w", err)
	case r == nil:
		return a.sheet.of(t.Kind, t.Object, original), nil
	}
	r.replaceOriginal(t.Kind, t.now, original)
	return r, nil
}

// keepOverridden keeps the content that another agent wants, if the target is about to take
// its place: it comes back when this step is undone. Before, no copy is needed, since the
// object itself has the content.
func (a *application) keepOverridden(ctx context.Context, r *record, t *target) error {
	top := prevailing(r.without(func(c claim) bool { return c.is(a.ledger.Agent, a.step) }))
	if top == nil || top.Secret || top.To.isContentKnown() || !t.Kind.same(t.now, top.To) {
		return nil
	}
	kept, err := a.keep(ctx, t.now, false)
	if err != nil {
		return fmt.Errorf("keep what agent %q wants: %w", top.Agent, err)
	}
	r.claim(top.Agent, top.Step).To = kept
	return nil
}

// claimOf is the step's claim on a target. Its content is not in it: it is kept only when
// another agent takes its place.
func (a *application) claimOf(t *target) claim {
	c := claim{
		Agent: a.ledger.Agent, Step: a.step, To: t.To.bare(), Needs: convert[text](t.Needs),
		Loose: t.Loose, Secret: t.Secret, Rewritten: t.Rewritten,
	}
	if t.Kind.endsWithBoot(t.Object) {
		c.Boot, c.Again = a.boot, text(t.Again)
	}
	return c
}

// writeOne writes a target, even if an earlier write has changed it along as wanted: to look
// again would take longer.
func (a *application) writeOne(ctx context.Context, t *target) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch need := a.missingNeed(ctx, t); {
	case need == nil:
	case need.failed:
		return fmt.Errorf("left off: it needs %s", printable.Line(need.Object))
	default:
		t.written = false // in the next pass, it is known whether its need was refused
		return nil
	}
	if t.staged != nil {
		staged := t.staged
		t.staged = nil
		return staged.Commit(ctx)
	}
	return t.Kind.Write(ctx, t.Object, t.To.onto(t.now))
}

// missingNeed returns a target of this step that t needs, and that has failed or is not as
// wanted although it was written. A configuration is not published whose plugin could not be
// written. Nil: there is none.
func (a *application) missingNeed(ctx context.Context, t *target) *target {
	for _, o := range a.before[t.id] {
		if (!a.isVerified(ctx, o) || o.failed) && !o.MayFail {
			return o
		}
	}
	return nil
}

// isVerified reports whether a target is as wanted if it was written and the kernel could
// have refused that silently.
func (a *application) isVerified(ctx context.Context, t *target) bool {
	if !t.tried || t.verified || !t.Kind.Rounds {
		return true
	}
	now, err := t.Kind.Read(ctx, t.Object)
	t.verified = err == nil && t.Kind.matches(now, t.Want)
	return t.verified
}

// claim records the objects that are as wanted, with or without a change. One that only
// matches a pattern is not claimed before it is changed: it may be another agent's.
func (a *application) claim(ctx context.Context) {
	for _, t := range a.targets {
		if t.failed {
			continue
		}
		r := a.sheet.records[t.id]
		if t.Unnamed && (r == nil || len(r.Claims) == 0) {
			continue
		}
		if err := a.claimOne(ctx, t); err != nil {
			a.fail(t, err)
		}
	}
}

// claimOne records a target that is as wanted. If another program has made it so, that is the
// original: the claim alone would otherwise make the state an agent's. What is adopted has no
// original, as if the step had made it.
func (a *application) claimOne(ctx context.Context, t *target) error {
	r, known := a.sheet.records[t.id], a.sheet.records[t.id] != nil
	if !known || !t.Loose { // what is only accepted stays another program's
		var err error
		if r, err = a.recordOf(ctx, t); err != nil {
			return err
		}
	}
	c := a.claimOf(t)
	switch {
	case !known && t.adopts && a.first:
		c.Adopted, r.Original = true, State{}
		a.done.Adopted = append(a.done.Adopted, t.Object)
	case !t.Kind.same(t.now, r.Left) && !t.Loose && !t.Rewritten:
		r.leave(t.now) // found as wanted, although another left it so
	}
	return a.claimFor(ctx, r, t, c)
}

// undoUnlisted undoes what the step claimed before and no longer lists. What has to stay is no
// failure of the step, and stays recorded.
func (a *application) undoUnlisted(ctx context.Context, wants Wants) error {
	gone := a.unlisted(a.sheet, a.step, wants)
	if len(gone) == 0 {
		return nil
	}
	var err error
	a.done.Undone, err = a.giveUp(a.sheet, gone).run(ctx)
	return errors.Join(err, a.save(a.sheet))
}

// unlisted lists the work of undoing what a step no longer lists.
func (b *Book) unlisted(s *sheet, step string, wants Wants) []*work {
	if wants.Complete == nil || len(wants.List) == 0 {
		return nil
	}
	listed := map[string]bool{}
	for _, w := range wants.List {
		listed[w.ID()] = true
	}
	return b.works(s, func(r *record, c claim) bool {
		k := b.kinds[r.Kind]
		return c.is(b.ledger.Agent, step) && !listed[r.id] && k != nil && wants.Complete(k, string(r.Object))
	})
}
