// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/internal/printable"
)

// Undone is what became of one object, or would.
type Undone struct {
	Object      string
	Agent, Step string // whose claim was dropped; empty: it was only changed along
	Change      string // in one line; empty: there was nothing to do
	Stays       bool   // nothing is written: Change says why
	Err         error  // why the object stays as it is
	Elapsed     time.Duration
}

// Undo drops the claims of steps, or of all if steps is nil: those of the ledger's agent, or
// of all agents if it says so. It brings each object to the state that the remaining claims
// want or, after the last, to its original. The error joins those of the objects.
func (b *Book) Undo(ctx context.Context, steps []string) ([]Undone, error) {
	s, err := b.load()
	if err != nil {
		return nil, err
	}
	unsettled, err := b.settleKilled(ctx, s)
	if err != nil {
		return nil, err
	}
	b.known.Clear() // what this process undoes itself is not lost
	works := b.works(s, b.picked(ctx, steps))
	if err := b.beginUndoing(s, steps, works); err != nil {
		return nil, err
	}
	done, err := b.newUndoing(s, works).run(ctx)
	var gone []string
	if b.reverts || steps == nil { // in an apply, an agent that wants nothing any more keeps its owner
		gone = b.undoes(s)
	}
	b.drop(s, gone...)
	b.updateLeft(ctx, s, works)
	err = errors.Join(unsettled, s.anyUnreadable(), err, b.save(s))
	if s.head.Agents[b.ledger.Agent] == nil {
		b.bound.Store(nil) // this process may apply again
	}
	return done, err
}

// beginUndoing says in the file that all of an agent is being undone.
func (b *Book) beginUndoing(s *sheet, steps []string, works []*work) error {
	if steps != nil {
		return nil
	}
	b.bound.Store(nil) // this process may apply again
	if len(works) == 0 {
		return nil
	}
	for _, name := range b.undoes(s) {
		if a := s.head.Agents[name]; a != nil && a.Undoing.IsZero() {
			a.Undoing = time.Now().UTC().Truncate(time.Second)
		}
	}
	return b.save(s)
}

// undoes lists the agents that are undone.
func (b *Book) undoes(s *sheet) []string {
	if b.ledger.AllAgents {
		return slices.Sorted(maps.Keys(s.head.Agents))
	}
	return []string{b.ledger.Agent}
}

// CheckUndo returns what Undo would do. It changes and settles nothing.
func (b *Book) CheckUndo(ctx context.Context, steps []string) (would []Undone, err error) {
	err = b.look(ctx, func(s *sheet) error {
		p := b.newUndoing(s, b.works(s, b.picked(ctx, steps)))
		p.plan(ctx)
		p.showDifferences(ctx)
		would = p.results()
		return errors.Join(s.anyUnreadable(), p.failures())
	})
	return would, err
}

// picked returns which claims an undoing drops.
func (b *Book) picked(ctx context.Context, steps []string) func(*record, claim) bool {
	return func(r *record, c claim) bool {
		k := b.kinds[r.Kind]
		isMeant := (b.ledger.AllAgents || c.Agent == b.ledger.Agent) && (steps == nil || slices.Contains(steps, c.Step))
		return isMeant && (k == nil || k.Leave == nil || !k.Leave(ctx, string(r.Object), c.shown()))
	}
}

// planned lists what undoing the objects that a step no longer lists would change, and reports
// whether it would drop claims.
func (b *Book) planned(ctx context.Context, s *sheet, works []*work) (lines []string, drops bool) {
	u := b.giveUp(s, works)
	u.plan(ctx)
	u.showDifferences(ctx)
	for _, w := range works {
		if drops = drops || !w.stays(); !w.stays() && w.change != "" {
			lines = append(lines, w.change)
		}
	}
	return lines, drops
}

// showDifferences adds what becomes of contents to what the context collects.
func (u *undoing) showDifferences(ctx context.Context) {
	for _, w := range u.works {
		if w.writes && !w.stays() {
			w.kind.showDifference(ctx, string(w.Object), w.now, u.writable(w.to), w.isSecret())
		}
	}
}

// work is one record that loses claims.
type work struct {
	*record
	agent    string // of the last claim that is dropped
	step     string
	kind     *Kind   // nil: this program does not know it
	rest     []claim // that remain
	restores bool    // nothing remains, so the original comes back
	now      State
	absent   bool  // there is no object
	to       State // what is to be written
	writes   bool
	tried    bool // to write it
	change   string
	err      error
	took     time.Duration
}

// stays reports whether the object stays as it is although its claims were dropped.
func (w *work) stays() bool { return w.err != nil }

// undoing is one run of Undo.
type undoing struct {
	*Book
	sheet *sheet
	works []*work
	byID  map[string]*work
	held  map[string]*work   // by what stays and needs it
	again map[string][]*work // by the ID of what changes them again at each boot
	parts map[string]*work   // by the IDs of paths that go with an object

	lenient bool // only what was tried and has failed is a failure, and nothing is given up: a step no longer lists it
}

func (b *Book) newUndoing(s *sheet, works []*work) *undoing {
	u := &undoing{
		Book: b, sheet: s, works: works,
		byID: map[string]*work{}, held: map[string]*work{}, again: map[string][]*work{}, parts: map[string]*work{},
	}
	for _, w := range works {
		u.byID[w.id] = w
		for _, c := range w.Claims {
			u.again[string(c.Again)] = append(u.again[string(c.Again)], w)
		}
	}
	return u
}

// giveUp is an undoing of what a step itself gives up.
func (b *Book) giveUp(s *sheet, works []*work) *undoing {
	u := b.newUndoing(s, works)
	u.lenient = true
	return u
}

// accepts reports whether what others have changed is left to them for good.
func (u *undoing) accepts() bool { return u.ledger.AcceptKept && !u.lenient }

// run undoes works, in their order. The caller saves.
func (u *undoing) run(ctx context.Context) ([]Undone, error) {
	u.plan(ctx)
	for _, w := range u.works {
		if w.Intent != nil && w.err == nil {
			w.err = fmt.Errorf("%s: what a killed run has begun cannot be settled", printable.Line(string(w.Object)))
		}
	}
	for _, w := range u.works {
		start := time.Now()
		err := u.undoOne(ctx, w)
		if w.took += time.Since(start); err != nil {
			return u.results(), err
		}
	}
	for _, w := range u.works {
		w.conclude()
	}
	return u.results(), errors.Join(u.failures(), ctx.Err())
}

// plan looks at all objects. Whether one stays can depend on any other: what stays keeps
// what it needs, and a directory what stays in it. So this goes on until none is added.
func (u *undoing) plan(ctx context.Context) {
	for _, w := range u.works {
		start := time.Now()
		u.look(ctx, w)
		w.took = time.Since(start)
		u.holdNeeds(w)
	}
	for again := true; again; {
		again = false
		for _, w := range u.works {
			if !w.stays() && u.hold(ctx, w) {
				again = true
			}
		}
	}
}

// look determines what is to be written to an object.
func (u *undoing) look(ctx context.Context, w *work) {
	w.now, w.absent, w.writes, w.change, w.err = State{}, false, false, "", nil
	if w.kind == nil {
		w.err = fmt.Errorf("%s %s: %w", w.Kind, w.Object, errUnknownKind)
		return
	}
	object := string(w.Object)
	if w.err = errors.Join(ctx.Err(), w.kind.owns(object)); w.err != nil {
		return
	}
	now, err := w.kind.Read(ctx, object)
	if err != nil {
		w.err = err
		return
	}
	w.now, w.absent = now, now.IsZero()
	to, satisfied := w.target(now)
	isAsLeft := w.isOurs(w.kind, now) || w.Intent != nil && u.isWritten(w.kind, w.Intent.Was, w.Intent.To, now) // or was about to be
	lost := w.kind.lost(object, u.writable(to))
	switch {
	case satisfied || w.kind.same(now, to) || now.Equal(to): // as a killed run has made it, by another identity
		w.leaveToOthers()
	// It has gone by itself, or was never changed by an agent, and could not come back:
	case now.IsZero() && w.kind.Rounds, !w.isMade(w.kind) && w.Intent == nil && (!w.isOurs(w.kind, now) || w.Original.secret):
	case !isAsLeft:
		u.leaveChanged(w)
	case lost != "":
		w.change = fmt.Sprintf("leave %s as it is: %s", printable.Line(object), lost)
	default:
		w.to, w.writes, w.change = to, true, w.kind.describe(object, now, to)
		if w.restores && to.SHA256 != "" && !now.IsZero() {
			w.change += ", as another program left it" // also where an apply has put that right since
		}
		w.err = u.findParts(ctx, w)
	}
}

// findParts finds what is removed with an object.
func (u *undoing) findParts(ctx context.Context, w *work) error {
	if w.kind.Parts == nil || !w.to.IsZero() {
		return nil
	}
	parts, err := w.kind.Parts(ctx, string(w.Object))
	for _, path := range parts {
		u.parts[pathSpace+" "+path] = w
	}
	return err
}

// target returns the state that the object is to have, or reports that the remaining claims
// are satisfied with the present one. A claim whose content was not kept cannot be obeyed:
// its agent writes it anew, and until then the original comes back.
func (w *work) target(now State) (to State, satisfied bool) {
	top, before := prevailing(w.rest), prevailing(w.Claims)
	switch {
	case top != nil && top.is(before.Agent, before.Step):
		return now, true // it prevailed before, too
	case top != nil && top.Loose && now.IsZero() && w.Left.IsZero():
		return now, true // no agent has ever made it
	case top != nil && now.Type == top.To.Type && (top.Loose || top.Rewritten && !w.kind.same(now, w.Left)):
		return now, true
	case top != nil && (top.To.isContentKnown() || w.kind.same(now, top.To)):
		return top.To, w.kind.matches(now, top.want(w.record, w.kind))
	case top == nil && before == nil && !w.restores:
		return now, true
	case top == nil && !w.restores: // it follows what changes it along
		return w.Causes[len(w.Causes)-1].To, false
	}
	return w.back(w.kind, now), false
}

// back returns the original, or nothing in the place of one that was not kept.
func (r *record) back(k *Kind, now State) State {
	if r.Original.secret && !k.same(now, r.Original) {
		return State{}
	}
	return r.Original
}

// leaveToOthers says that the object stays, since others want it.
func (w *work) leaveToOthers() {
	if top := prevailing(w.rest); top != nil && w.isMade(w.kind) {
		w.change = fmt.Sprintf("leave %s to agent %q, which wants it too", printable.Line(string(w.Object)), top.Agent)
	}
}

// leaveChanged leaves an object to the program that has changed it. If agents remain that
// want it, it is theirs to report.
func (u *undoing) leaveChanged(w *work) {
	name := printable.Line(string(w.Object))
	if len(w.rest) > 0 || len(w.Claims) == 0 || u.accepts() {
		w.change = fmt.Sprintf("leave %s as another program has changed it", name)
		return
	}
	is := ""
	if w.now.Type != w.Left.Type && !w.absent {
		is = fmt.Sprintf(" (it is %s now)", printable.Line(w.now.Type))
	}
	w.err = fmt.Errorf("%s is %w%s, so it is kept", name, ErrChanged, is)
}

// hold reports whether the object has to stay, since another one stays that needs it, or
// its kind says why.
func (u *undoing) hold(ctx context.Context, w *work) bool {
	name := printable.Line(string(w.Object))
	if by := u.neededBy(w); by != nil {
		w.err = fmt.Errorf("%s is %w: %s stays", name, ErrNeeded, printable.Line(string(by.Object)))
	} else if w.writes && w.kind.Keeps != nil {
		why, err := w.kind.Keeps(With(ctx, u.Book), string(w.Object), u.after)
		switch {
		case errors.Is(err, ErrChanged) && u.accepts():
			w.writes, w.change = false, fmt.Sprintf("leave %s: it is %v", name, err)
		case err != nil:
			w.err = fmt.Errorf("%s is %w", name, err)
		case why != "":
			w.err = fmt.Errorf("%s is %w: %s", name, ErrNeeded, why)
		}
	}
	u.holdNeeds(w)
	return w.stays()
}

// holdNeeds keeps what an object needs that stays. One that has gone needs nothing any
// more, nor does one that agents have removed, and that is there again. A directory needed
// it when it was made.
func (u *undoing) holdNeeds(w *work) {
	if !w.stays() || w.absent != w.Left.IsZero() {
		return
	}
	needs := w.needed()
	if w.Left.Type == typeDir {
		needs = above(w.id)
	}
	for _, id := range needs {
		u.held[id] = w
	}
	for _, o := range u.again[w.id] {
		u.held[o.id] = w
	}
}

// neededBy returns an object that stays and needs w, or has changed w along. Nil: there is
// none. What another program has changed causes nothing any more, but it may come back, and
// with it what it had changed along.
func (u *undoing) neededBy(w *work) *work {
	for _, c := range w.Causes {
		by := u.byID[string(c.ID)]
		if by != nil && by.stays() && (!errors.Is(by.err, ErrChanged) || !w.writes) {
			return by
		}
	}
	return u.held[w.id]
}

// after is a StateAfter.
func (u *undoing) after(k *Kind, object string) (State, bool) {
	w := u.byID[k.id(object)]
	if part := u.parts[k.id(object)]; part != nil && (w == nil || !w.writes) {
		w = part
	}
	if w == nil || w.stays() || !w.writes {
		return State{}, false
	}
	return u.writable(w.to), true
}

// undoOne looks at the object once more, and writes it. An error ends the undoing. The
// original that it is about to become is recorded already; what that changes along is not,
// nor what the kernel makes of a value that others want, nor that they want none, nor what a
// killed run leaves of an object that consists of several.
func (u *undoing) undoOne(ctx context.Context, w *work) error {
	if w.stays() {
		return nil
	}
	if u.look(ctx, w); !w.stays() {
		u.hold(ctx, w)
	}
	defer u.holdNeeds(w) // if it could not be undone
	if w.stays() || !w.writes {
		return nil
	}
	if w.err = u.begin(ctx, w); w.err != nil {
		return nil
	}
	if len(w.Intent.Along) > 0 || !w.restores && (w.kind.Rounds || w.to.IsZero()) || w.kind.Parts != nil {
		if err := u.save(u.sheet); err != nil {
			return err
		}
	}
	w.tried = true
	switch err := w.kind.Write(ctx, string(w.Object), u.writable(w.to).onto(w.now)); {
	case isGone(err): // another program has removed what the object was in
		w.Intent = nil
		u.leaveChanged(w)
		return nil
	case err != nil && len(w.rest) > 0: // it is theirs to report who want it so
		w.change, w.writes = "", false
		w.leaveToOthers()
	case err != nil:
		w.err = fmt.Errorf("%s: %w", w.change, err)
	}
	u.readBack(ctx, w)
	return nil
}

// readBack verifies what was written, and puts back what that has changed along. If others
// want the object, it is theirs to report that it is different.
func (u *undoing) readBack(ctx context.Context, w *work) {
	if err := u.settleAlong(ctx, u.sheet, w.record); err != nil {
		w.err = errors.Join(w.err, err)
		return
	}
	written, err := u.settleOne(ctx, w.record)
	if err == nil && w.err == nil && w.restores && !written {
		err = fmt.Errorf("%s: %w", w.change, ErrRefused)
	}
	w.err = errors.Join(w.err, err)
}

// begin records what undoing w changes along, and what these objects are put back to: a
// killed run is settled without the steps of other agents.
func (u *undoing) begin(ctx context.Context, w *work) error {
	object := string(w.Object)
	sides, err := u.beginAlong(ctx, u.sheet, w.kind, object, w.to)
	if err != nil {
		return err
	}
	left, err := w.kind.along(ctx, object, w.Left)
	if err != nil {
		return err
	}
	made := map[string]State{}
	for _, side := range left {
		made[side.Kind.id(side.Object)] = side.To
	}
	for i, side := range sides {
		sides[i].Back = u.backAlong(side, made)
		if !w.restores && sides[i].Back == nil { // it is changed along for those who still want w
			u.sheet.of(u.kinds[side.Kind], string(side.Object), side.Was).addCause(w.record, side.To, side.Boot)
		}
	}
	w.Intent = &intent{To: w.to.bare(), Was: w.now.bare(), Undo: true, Along: sides}
	return nil
}

// backAlong returns the state that an object is put back to after it was changed along.
// Nil: it follows. An object without a record that is as w had made it, such as a link's
// value that came later, follows too.
func (u *undoing) backAlong(side along, made map[string]State) *State {
	k, id := u.kinds[side.Kind], side.id()
	r, rest, restores := u.sheet.records[id], []claim(nil), false
	if r != nil {
		rest = r.Claims
	}
	if w := u.byID[id]; w != nil {
		rest, restores = w.rest, w.restores
	}
	to, isMade := made[id]
	top := prevailing(rest)
	switch {
	case r == nil && isMade && k.same(side.Was, to):
		return nil
	case r == nil || !r.isOurs(k, side.Was):
		return &side.Was
	case top != nil && !top.Loose && top.To.isContentKnown():
		return &top.To
	case restores:
		back := r.back(k, side.Was)
		return &back
	}
	return nil
}

// conclude drops the claims of an object that was undone, or was left to others. One that
// another program has changed keeps its claims, and is reported each time.
func (w *work) conclude() {
	switch {
	case w.err == nil:
		if len(w.rest) > 0 && !w.writes {
			w.leaveRewritten(w.kind, w.now)
		}
		w.Claims, w.Kept = w.rest, ""
		if w.restores {
			w.Causes = nil
		}
	case errors.Is(w.err, ErrChanged):
		w.Kept = text(w.err.Error())
	}
}

// results lists the objects for which there was something to do or to say.
func (u *undoing) results() (all []Undone) {
	for _, w := range u.works {
		if w.change != "" || w.err != nil {
			all = append(all, Undone{string(w.Object), w.agent, w.step, w.change, !w.writes, w.err, w.took})
		}
	}
	return all
}

// failures joins the reasons of objects that stay. That something needs one is no failure.
func (u *undoing) failures() error {
	var errs []error
	for _, w := range u.works {
		if !errors.Is(w.err, ErrNeeded) && (w.tried || !u.lenient) {
			errs = append(errs, w.err)
		}
	}
	return errors.Join(errs...)
}
