// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Undone is the result, or expected result, of undoing one entry.
type Undone struct {
	Entry  Entry
	Change string // the change made, in one line; empty if there was nothing to do
	Err    error  // why the object was not undone; nil if it was
}

// IsFailure reports whether Err is a failure to report. It is not if the caller asked
// to keep the object, or if the only reason is that another recorded object was not
// undone: the error of that one is reported.
func (u Undone) IsFailure() bool { return counts(u.Err) }

// errBelow means that an object is not undone because another recorded object is not,
// whose reason has been reported.
var errBelow = errors.New("something else that is recorded is kept")

// holds reports whether err, of undoing an entry, also prevents undoing the objects that
// the entry needs. An object that now has another owner does not.
func holds(err error) bool {
	return err != nil && (!errors.Is(err, ErrChanged) || errors.Is(err, ErrKept))
}

// counts reports whether err is a failure to report.
func counts(err error) bool {
	return err != nil && !errors.Is(err, errBelow) && (!errors.Is(err, ErrKept) || errors.Is(err, ErrChanged))
}

// Revert undoes the entries of the context's step, newest first. The error names those
// that could not be undone.
func (j *Journal) Revert(ctx context.Context) error {
	done, err := j.undoStep(ctx, j.handlers(), all, true)
	return failures(done, err)
}

// CheckRevert lists the changes that Revert would make, and returns the errors that can
// be foreseen.
func (j *Journal) CheckRevert(ctx context.Context) ([]string, error) {
	would, err := j.undoStep(ctx, j.handlers(), all, false)
	return changes(would), failures(would, err)
}

func (j *Journal) handlers() []Handler {
	if j == nil {
		return nil
	}
	return j.options.Handlers
}

// Undo undoes those entries of the context's step whose kinds the given handlers
// know. It is for the Revert of a single action, and does not touch entries of
// other kinds.
func (j *Journal) Undo(ctx context.Context, handlers ...Handler) error {
	done, err := j.undoStep(ctx, handlers, known(handlers), true)
	return failures(done, err)
}

// CheckUndo lists the changes that Undo would make.
func (j *Journal) CheckUndo(ctx context.Context, handlers ...Handler) ([]string, error) {
	would, err := j.undoStep(ctx, handlers, known(handlers), false)
	return changes(would), failures(would, err)
}

func (j *Journal) undoStep(ctx context.Context, handlers []Handler, pick func(Entry) bool, run bool) ([]Undone, error) {
	if j == nil {
		return nil, errNoJournal
	}
	j, err := j.of(ctx)
	if err != nil {
		return nil, err
	}
	return j.undo(ctx, handlers, run, func(e Entry) bool { return e.Step == j.step && pick(e) })
}

func all(Entry) bool { return true }

// known picks the entries that handlers can undo.
func known(handlers []Handler) func(Entry) bool {
	kinds := map[string]bool{}
	for _, h := range handlers {
		for _, kind := range h.Kinds() {
			kinds[kind] = true
		}
	}
	return func(e Entry) bool { return kinds[e.Kind] }
}

// RevertAll undoes everything, whichever step of whichever program has recorded it, and
// returns the result of each entry. The error joins those of the entries. Once the last
// entry is undone, the journal is removed, and the node has no owner.
func (j *Journal) RevertAll(ctx context.Context) (done []Undone, err error) {
	if j == nil {
		return nil, errNoJournal
	}
	leave := nothing
	switch op := j.entered(ctx); op {
	case opRevert:
	case "":
		if ctx, leave, err = j.Enter(ctx, opRevert); err != nil {
			return nil, err
		}
	default:
		return nil, inUse(j, op)
	}
	done, err = j.undo(ctx, j.options.Handlers, true, all)
	return done, errors.Join(failures(done, err), leave())
}

func inUse(j *Journal, op string) error {
	return fmt.Errorf("undo everything: %s is in use by this very %s", j.Dir(), op)
}

// CheckRevertAll returns the results that RevertAll would have.
func (j *Journal) CheckRevertAll(ctx context.Context) ([]Undone, error) {
	if j == nil {
		return nil, errNoJournal
	}
	would, err := j.undo(ctx, j.options.Handlers, false, all)
	return would, failures(would, err)
}

func changes(all []Undone) (lines []string) {
	said := map[string]bool{}
	for _, u := range all {
		if u.Change != "" && !holds(u.Err) && !said[u.Change] {
			lines, said[u.Change] = append(lines, u.Change), true
		}
	}
	return lines
}

func failures(all []Undone, err error) error {
	errs, said, kept := []error{err}, map[string]bool{}, err == nil
	for _, u := range all {
		if counts(u.Err) && !said[u.Err.Error()] {
			errs, said[u.Err.Error()] = append(errs, u.Err), true
			kept = kept && errors.Is(u.Err, ErrChanged)
		}
	}
	joined := errors.Join(errs...)
	if joined != nil && kept {
		return onlyKept{joined}
	}
	return joined
}

// advised adds to err, for a plan, the objects that stay because they are needed.
func advised(err error, all []Undone) error {
	var lines []string
	for _, u := range all {
		if errors.Is(u.Err, ErrNeeded) && !u.IsFailure() && !slices.Contains(lines, u.Err.Error()) {
			lines = append(lines, u.Err.Error())
		}
	}
	if len(lines) == 0 {
		return err
	}
	return advising{err, lines}
}

// advising is a bootstrap.AdvisingError.
type advising struct {
	error
	lines []string
}

func (a advising) Error() string    { return strings.Join(a.lines, "\n") }
func (a advising) Unwrap() error    { return a.error }
func (a advising) Advice() []string { return a.lines }

// onlyKept is the error of a plan that undid everything possible: the remaining objects
// now have other owners.
type onlyKept struct{ error }

// OnlyKept makes the error a bootstrap.KeptError.
func (onlyKept) OnlyKept() {}

func (e onlyKept) Unwrap() error { return e.error }

// undoing is one pass.
type undoing struct {
	*Pass
	page     *page
	handlers []Handler
	works    []*work
	needs    map[string]id // objects needed by one that stays, and that one

	givenUp    []Entry           // of objects found as wanted
	bequeathed map[id]bool       // the heirs: their inherited states are in page
	others     map[string]claims // of other agents, by identity
}

// work is the handling of one entry in one pass.
type work struct {
	Undone
	run      func(context.Context) error
	removes  []string
	settled  bool   // without being examined
	heir     *claim // another agent that wants the object
	restores bool   // the state that the heir wants, instead of the original
	yields   bool   // leaves the heir even an object that is not as this agent has left it
	keeps    bool   // the entry is needed as long as that agent wants the object
}

// undo looks at all picked entries, in the order in which they are undone, and
// then, if run is set, undoes them.
func (j *Journal) undo(ctx context.Context, handlers []Handler, run bool, pick func(Entry) bool) ([]Undone, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := j.mayRevert(ctx); err != nil {
		return nil, err
	}
	p, err := j.load()
	if err != nil {
		return nil, err
	}
	others, err := j.wantedByOthers(p)
	if err != nil {
		return nil, err
	}
	u := &undoing{
		Pass:     &Pass{journal: j, gone: map[string]bool{}, stays: map[string]bool{}, undone: map[string]bool{}},
		page:     p,
		handlers: handlers,
		needs:    map[string]id{},

		bequeathed: map[id]bool{},
		others:     others,
	}
	u.giveUp(pick)
	u.take(pick)
	for _, w := range u.works {
		u.look(ctx, w)
	}
	if run {
		err = u.run(ctx)
	} else {
		if len(u.givenUp) > 0 {
			j.toClaim.Store(true)
		}
		u.accept()
	}
	var all []Undone
	for _, w := range u.works {
		all = append(all, w.Undone)
	}
	return all, err
}

// giveUp picks the entries of objects that the agent found as wanted: they are undone by
// dropping them, unless the agent is the last to want an object that another agent
// changed and left to it: then it must restore the original.
func (u *undoing) giveUp(pick func(Entry) bool) {
	for _, e := range u.page.Found {
		others := u.others[e.Identity]
		switch made := others.released(); {
		case !pick(e):
		case others.top() == nil && made != nil && !u.journal.outlived(e):
			e.Before, e.After, e.Boot, e.Found = made.Before, made.After, made.Boot, false
			u.page.Entries = append(u.page.Entries, e)
		default:
			u.givenUp = append(u.givenUp, e)
		}
	}
}

// take lists the work of the pass. Entries that a reboot has undone are dropped. If a
// later step has changed the same object, the object is that step's: its entry inherits
// the original, unless another program changed the object in between.
func (u *undoing) take(pick func(Entry) bool) {
	settled := map[id]bool{}
	heirs := u.heirs()
	for i, e := range u.page.Entries { // oldest first: originals go from step to step
		if !pick(e) {
			continue
		}
		heir, inherited := heirs[i]
		settled[e.id()] = inherited || u.journal.outlived(e)
		if !inherited || u.journal.outlived(e) || !e.MatchesAfter(u.page.Entries[heir].Before) {
			continue
		}
		u.bequeathed[u.page.Entries[heir].id()] = true
		u.page.Entries[heir].Before = e.Before
		if e.Boot == "" {
			u.page.Entries[heir].Boot = ""
		}
	}
	picked := slices.DeleteFunc(slices.Clone(u.page.Entries), func(e Entry) bool { return !pick(e) })
	for _, e := range order(picked) {
		u.undone[e.Object] = true
		u.works = append(u.works, &work{Undone: Undone{Entry: e}, settled: settled[e.id()]})
	}
}

// heirs maps the index of an entry to that of the entry by the next step that
// changed the same object.
func (u *undoing) heirs() map[int]int {
	heirs, next := map[int]int{}, map[id]int{}
	for i, e := range slices.Backward(u.page.Entries) {
		if u.journal.passed(e) {
			continue
		}
		object := Entry{Kind: e.Kind, Object: e.Object}.id()
		if later, known := next[object]; known {
			heirs[i] = later
		}
		next[object] = i
	}
	return heirs
}

func (u *undoing) look(ctx context.Context, w *work) {
	if w.settled || u.leaveToOthers(w) {
		return
	}
	undo, err := u.lookAt(ctx, w.Entry)
	if w.yields && errors.Is(err, ErrChanged) {
		u.leave(w)
		return
	}
	if err != nil {
		u.settle(w, err)
		return
	}
	w.Change, w.run, w.removes = undo.Change, undo.Run, undo.Removes
	for _, path := range w.removes {
		u.gone[path] = true
	}
	w.Err = undo.Leaves
	u.undone[w.Entry.Object] = w.Err == nil
}

// leaveToOthers reports whether the object stays because another agent wants it as it is.
// If an overridden agent wants it to be different, that agent's wish is restored.
func (u *undoing) leaveToOthers(w *work) bool {
	e, others := &w.Entry, u.others[w.Entry.Identity]
	w.heir, e.also = others.top(), others.states()
	switch {
	case w.heir == nil:
		return false
	case e.Turn > w.heir.Turn && e.mayDiffer(w.heir.Entry):
		e.Before = others.restorable(*e)
		w.restores, w.keeps = true, e.Before.Type == "file" // which is not the file that agent has left
		w.yields = !w.heir.Done                             // and may never have made it
		return false
	}
	u.leave(w)
	return true
}

// leave leaves the object to another agent, and keeps the information that that agent
// lacks in the entry: the object's state, or the wish of an overridden agent.
func (u *undoing) leave(w *work) {
	e := w.Entry
	w.restores, w.keeps = false, !e.Done && e.Over != nil || slices.ContainsFunc(u.others[e.Identity].wanting(), func(c claim) bool {
		return !c.After.Same(e.After) || !c.After.Same(e.before()) || c.After.File != e.After.File
	}) || u.others[e.Identity].made() == nil
	w.Change = fmt.Sprintf("leave %s to agent %q, which wants it too", e.Object, w.heir.agent)
	u.stays[e.Object] = true
}

// before returns the state in which e may have left its object if e is not done: the one
// before e was begun again.
func (e Entry) before() State {
	if !e.Done && e.Was != nil {
		return *e.Was
	}
	return e.After
}

// mayDiffer reports whether e may have left its object in a state other than o wants.
func (e Entry) mayDiffer(o Entry) bool {
	was := e
	was.After = e.before()
	return !o.agrees(e) || !o.agrees(was)
}

// restorable is the state to restore for the top claim, which e has overridden: the
// wanted state, if its content is known to e or to another entry that has overridden it
// too, or else the original, from which that agent makes the state that it wants.
func (cs claims) restorable(e Entry) State {
	top := cs.top()
	for _, by := range append(claims{{Entry: e}}, cs...) {
		if by.Over != nil && top.MatchesAfter(*by.Over) {
			return *by.Over
		}
	}
	if top.After.Type != "file" {
		return top.After
	}
	return e.Before
}

func (u *undoing) lookAt(ctx context.Context, e Entry) (Undo, error) {
	if u.needed(e) {
		return Undo{}, errBelow
	}
	for _, h := range u.handlers {
		if !slices.Contains(h.Kinds(), e.Kind) {
			continue
		}
		if err := h.Owns(e); err != nil {
			return Undo{}, fmt.Errorf("%s cannot be a record of this kind: %w", e, err)
		}
		return u.lookIn(ctx, h, e)
	}
	return Undo{}, fmt.Errorf("%s: %w (step %s of %s did): it is kept: no handler is registered for this kind", e, ErrUnknownKind, e.Step, u.page.ownerOf(e))
}

// lookIn calls the handler in the namespaces that the object is in.
func (u *undoing) lookIn(ctx context.Context, h Handler, e Entry) (undo Undo, err error) {
	namespaces := h.Namespaces()
	switch {
	case len(namespaces) == 0:
		namespaces = []string{"mnt"} // recorded by a process on the host, whichever undoes it
	case len(e.Namespaces) > 0:
		namespaces = e.Namespaces
	}
	enter := func(ctx context.Context, f func(context.Context) error) error {
		return u.journal.enter(ctx, namespaces, f)
	}
	err = enter(ctx, func(ctx context.Context) (err error) {
		undo, err = h.Look(ctx, u.Pass, e)
		return err
	})
	if inside := undo.Run; inside != nil {
		undo.Run = func(ctx context.Context) error { return enter(ctx, inside) }
	}
	return undo, err
}

// needed reports whether an object that is not undone needs e.
func (u *undoing) needed(e Entry) bool {
	by, needed := u.needs[e.Object]
	return needed && by != e.id()
}

func (u *undoing) settle(w *work, err error) {
	w.Err = err
	if err != nil {
		for _, path := range w.removes {
			delete(u.gone, path)
		}
	}
	if err != nil {
		u.stays[w.Entry.Object], u.undone[w.Entry.Object] = true, false
	}
	if holds(err) {
		for _, object := range w.Entry.Needs {
			u.needs[object] = w.Entry.id()
		}
	}
}

// run undoes the entries that were looked at, and drops those that are undone.
func (u *undoing) run(ctx context.Context) error {
	var gone []Entry
	var ended error
	for _, w := range u.works {
		if ended == nil {
			ended = ctx.Err()
		}
		if ended != nil {
			u.settle(w, ended)
			continue
		}
		if w.restores && w.Err == nil && w.Change != "" {
			if ended = u.beginRestoring(w.Entry); ended != nil {
				u.settle(w, ended)
				continue
			}
		}
		u.runOne(ctx, w)
		if w.Err == nil && !w.keeps {
			gone = append(gone, w.Entry)
		}
	}
	if ended == nil {
		gone = append(gone, u.givenUp...)
	}
	return u.forget(gone, u.accept())
}

// accept suppresses the errors of kept objects, if requested and nothing else has failed:
// they are left in place for good. Objects that something else needs stay recorded, with
// the directories above them.
func (u *undoing) accept() (accepted []Entry) {
	if !u.journal.options.AcceptKept || slices.ContainsFunc(u.works, func(w *work) bool { return counts(w.Err) && !errors.Is(w.Err, ErrChanged) }) {
		return nil
	}
	needed, holds := map[string]bool{}, map[string]bool{}
	for _, w := range u.works {
		switch {
		case w.Err == nil, holds[w.Entry.Identity]:
		case errors.Is(w.Err, ErrNeeded) && !needed[w.Entry.Object]:
			for _, dir := range w.Entry.above() {
				holds[dir] = true
			}
		default:
			for _, object := range w.Entry.Needs {
				needed[object] = true
			}
			accepted = append(accepted, w.Entry)
			w.Change, w.Err = fmt.Sprintf("leave %s for good: %v", w.Entry, w.Err), nil
		}
	}
	return accepted
}

// kept lists the entries whose objects now have other owners.
func (u *undoing) kept() (kept []Entry) {
	for _, w := range u.works {
		if w.Err != nil && !holds(w.Err) && !w.Entry.Kept {
			kept = append(kept, w.Entry)
		}
	}
	return kept
}

// released lists the entries that agents which want their objects still need.
func (u *undoing) released() (released []Entry) {
	for _, w := range u.works {
		if w.Err != nil || !w.keeps {
			continue
		}
		e := w.Entry
		if w.restores {
			e.After = e.Before
		}
		released = append(released, e)
	}
	return released
}

func (u *undoing) runOne(ctx context.Context, w *work) {
	switch {
	case w.settled, w.Err != nil && w.run == nil, w.heir != nil && w.run == nil:
	case u.needed(w.Entry): // also if there is nothing to do about it now
		u.settle(w, errBelow)
	case w.run == nil || w.Change == "":
	default:
		u.settle(w, w.run(ctx))
	}
}

// beginRestoring records, durably, that e's object is about to be put in the state that
// another agent wants. If this process is killed, and that agent is uninstalled first,
// the next process recognizes the object by that.
func (u *undoing) beginRestoring(e Entry) error {
	return u.journal.change(func(l *log) error {
		was, known := l.entries.get(e.id())
		if !known || !was.Done && was.Over != nil && was.Over.Same(e.Before) { // which it knows
			return nil
		}
		if left := was.After; !left.Same(e.Before) {
			was.Was = &left
		}
		was.After, was.Done = e.Before, false
		return l.put(was)
	})
}

// forget drops entries, with the content that was stored for them, and saves the others.
// Those left for good are remembered as that.
func (u *undoing) forget(gone, forGood []Entry) error {
	j, kept, released := u.journal, u.kept(), u.released()
	if len(gone)+len(forGood)+len(kept)+len(released) == 0 {
		return j.tidy()
	}
	if err := j.change(func(l *log) error {
		for _, e := range u.page.Entries { // inherited states
			if was, known := l.entries.get(e.id()); known && u.bequeathed[e.id()] {
				was.Before, was.Boot = e.Before, e.Boot
				if err := l.put(was); err != nil {
					return err
				}
			}
		}
		for _, e := range kept {
			if was, known := l.entries.get(e.id()); known {
				was.Kept = true
				if err := l.put(was); err != nil {
					return err
				}
			}
		}
		for _, e := range released {
			if was, known := l.entries.get(e.id()); known {
				was.After, was.Released = e.After, true
				if err := l.put(was); err != nil {
					return err
				}
			}
		}
		if err := l.forget(gone...); err != nil {
			return err
		}
		return l.leave(forGood...)
	}); err != nil {
		return err
	}
	return j.tidy()
}

// ForgetObject drops the entries of an object without undoing them, for changes that can
// never be undone, and remembers that the object is left for good. It returns the dropped
// entries.
func (j *Journal) ForgetObject(ctx context.Context, object string) (dropped []Entry, err error) {
	if j == nil {
		return nil, errNoJournal
	}
	if err := j.mayRevert(ctx); err != nil {
		return nil, err
	}
	entries, err := j.Entries()
	if err != nil {
		return nil, err
	}
	dropped = slices.DeleteFunc(entries, func(e Entry) bool { return e.Object != object })
	if len(dropped) == 0 {
		return nil, fmt.Errorf("%s is not recorded in %s", object, j.Dir())
	}
	u := &undoing{Pass: &Pass{journal: j}, page: &page{}}
	return dropped, u.forget(nil, dropped)
}

// wantedByOthers returns the claims of other agents on the objects in p, by identity.
func (j *Journal) wantedByOthers(p *page) (map[string]claims, error) {
	if err := j.lookAround(); err != nil {
		return nil, err
	}
	var identities []string
	for _, e := range slices.Concat(p.Entries, p.Found) {
		identities = append(identities, e.Identity)
	}
	return j.othersOf(identities...)
}

// Release gives up all entries of an agent that has gone, and needs none of its handlers.
// Objects that other agents want then belong to those. The others stay in place, and are
// remembered as left for good: Release returns their entries. The original of an object
// that no agent wants any more does not come back.
//
// Make sure that the agent is not running: see [Journal.OwnerAlive]. Like a revert, it
// must be called by the owner, or with [Node].AnyOwner.
func (j *Journal) Release(ctx context.Context) (left []Entry, err error) {
	if j == nil {
		return nil, errNoJournal
	}
	_, leave, err := j.Enter(ctx, opRevert)
	if err != nil {
		return nil, err
	}
	p, err := j.load()
	if err != nil {
		return nil, err
	}
	others, err := j.wantedByOthers(p)
	if err != nil {
		return nil, err
	}
	u := &undoing{Pass: &Pass{journal: j, stays: map[string]bool{}}, page: p, others: others}
	gone := p.Found
	for _, e := range p.Entries {
		w := &work{Undone: Undone{Entry: e}}
		u.works = append(u.works, w)
		switch theirs := u.leaveToOthers(w); {
		case j.outlived(e):
			w.keeps, gone = false, append(gone, e)
		case w.heir != nil && !theirs: // it is in the state that this agent made, against their wish
			w.Entry, w.restores, w.keeps = e, false, true
		case w.keeps:
		case theirs:
			gone = append(gone, e)
		default:
			left = append(left, e)
		}
	}
	return left, errors.Join(u.forget(gone, left), leave())
}
