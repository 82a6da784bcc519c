// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Wish is an object that a step wants, whether or not it has made it.
type Wish struct {
	// Entry describes the object, and its After the wanted state, as far as it is known
	// beforehand.
	Entry

	// Met means that the object is as wanted.
	Met bool

	// Adoptable means that the object may be adopted as the agent's own: the agent's
	// configuration names it, and it has no other owner. A mount, a directory, or a
	// program that several agents bring is not adoptable.
	Adoptable bool

	// Claim requests a record for an object found as wanted, although nothing is changed,
	// so that an agent that wants it differently gets an error. Do not use it for large
	// numbers of short-lived objects.
	Claim bool

	// Lasting means that the step makes the object as wanted in each boot: its entry
	// outlives this boot, even if that of the agent that has made the object does not.
	Lasting bool
}

// CheckWishes lists the records that Wish would make. An action calls it at the end of
// its Check with all objects that it wants, so that a conflict is detected before
// anything is changed. An object found as wanted is no change: in an apply, it is
// recorded here.
//
// The error matches [ErrConflict] if another agent of the node wants one of the objects
// to be different.
func (j *Journal) CheckWishes(ctx context.Context, wishes ...Wish) (changes []string, err error) {
	if j == nil || len(wishes) == 0 {
		return nil, nil
	}
	all, err := j.grant(ctx, wishes)
	var found []granted
	for _, g := range all {
		if g.Found {
			found = append(found, g)
			continue
		}
		changes = append(changes, g.change)
	}
	switch {
	case err != nil || len(found) == 0:
	case j.entered(ctx) == opApply:
		err = j.recordGranted(ctx, found)
	default:
		j.toClaim.Store(true)
	}
	return changes, err
}

// Wish records, durably, the objects that are as wanted and that the step has not made:
// an object made by another agent of the node then stays until both are undone, and one
// that existed already is adopted, if requested. An action calls it at the end of its
// Apply. An object that no agent has made and that is not adopted is not undone.
func (j *Journal) Wish(ctx context.Context, wishes ...Wish) error {
	if j == nil || len(wishes) == 0 {
		return nil
	}
	granted, err := j.grant(ctx, wishes)
	if err != nil {
		return err
	}
	return j.recordGranted(ctx, granted)
}

func (j *Journal) recordGranted(ctx context.Context, granted []granted) error {
	if len(granted) == 0 {
		return nil
	}
	var entries []Entry
	for _, g := range granted {
		if g.asIs {
			if err := g.look(ctx); err != nil {
				return err
			}
		}
		if g.Found {
			g.Before = g.After
		}
		entries = append(entries, g.Entry)
	}
	others, err := j.identify(entries)
	if err != nil {
		return unrecorded{err}
	}
	return j.record(ctx, entries, func(l *log, entries []Entry) error {
		for i := range entries {
			if err := j.complete(ctx, l, &entries[i]); err != nil {
				return err
			}
		}
		above, err := j.above(ctx, l, entries, others)
		if err != nil {
			return err
		}
		return l.join(append(above, entries...)...)
	})
}

// look completes the entry of a file that is recorded as it is, with its present state:
// later changes have another owner.
func (e *Entry) look(ctx context.Context) error {
	if e.After.Type != "file" {
		return nil
	}
	now, err := Snapshot(ctx, e.Object)
	if err == nil && (now.Type != "file" || !mayEqual(e.After.SHA256, now.SHA256)) {
		err = errors.New("it is being changed")
	}
	if err != nil {
		return fmt.Errorf("record %s as it is: %w", e.Object, err)
	}
	if e.Found && e.After.Mode != 0 { // it may accept another one
		now.Mode, now.UID, now.GID = e.After.Mode, e.After.UID, e.After.GID
	}
	e.After = now
	return nil
}

// granted is an entry that is to be recorded although nothing is changed.
type granted struct {
	Entry
	change string // empty if it is Found
	asIs   bool   // it records the present state, not the one that another agent has left
}

// grant decides how wishes are recorded.
func (j *Journal) grant(ctx context.Context, wishes []Wish) (all []granted, err error) {
	if j.Alone() {
		wishes = slices.DeleteFunc(slices.Clone(wishes), func(w Wish) bool { return !w.Adoptable && !w.Claim })
	}
	if len(wishes) == 0 {
		return nil, nil
	}
	j, err = j.of(ctx)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(wishes))
	for i, w := range wishes {
		entries[i] = w.Entry
		entries[i].Step, entries[i].Done = j.step, true
	}
	others, err := j.identify(entries)
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	l, err := j.current()
	if err != nil {
		return nil, err
	}
	var errs []error
	for i, w := range wishes {
		g, err := j.grantOne(l, entries[i], w, others[entries[i].Identity])
		errs = append(errs, err)
		if g.change != "" || g.Found {
			all = append(all, g)
		}
	}
	return all, errors.Join(errs...)
}

func (j *Journal) grantOne(l *log, e Entry, w Wish, others claims) (g granted, err error) {
	begun := e
	if err := j.negotiate(l, &begun, others); err != nil {
		return g, err
	}
	own, known := l.entries.get(e.id())
	top := others.top()
	switch known = known && !j.passed(own); {
	case !w.Met, known && (own.agrees(e) || own.Done && (top == nil || !top.agrees(e))):
		return g, nil
	case known && top != nil && top.agrees(e): // it wanted something else before
		own.After, own.Turn, own.Over, own.Was, own.Done = top.After, max(own.Turn, top.Turn+1), nil, nil, true
		return granted{own, fmt.Sprintf("keep %s also for this agent: agent %q has made it", e.Object, top.agent), false}, nil
	case known: // it was about to change it into something else
		own.After, own.Turn, own.Was, own.Done = e.After, max(own.Turn, begun.Turn), nil, true
		return granted{own, fmt.Sprintf("keep %s as it is: an earlier run was about to change it", e.Object), true}, nil
	}
	switch made := others.made(); {
	case made == nil:
		e.Turn = begun.Turn
		return j.grantFound(l, e, w, top), nil
	case !top.agrees(e): // which is overridden
		e.Before, e.Turn = begun.Before, begun.Turn
		return granted{e, fmt.Sprintf("keep %s as it is: agent %q, which wants %s, is overridden", e.Object, top.agent, top.wish()), true}, nil
	default:
		e.Before, e.Turn, e.Boot = made.Before, top.Turn+1, top.Boot
		if found := e.After.Type == "mount" && e.After.Value != "" || e.After.File != ""; !found { // which distinguishes it from the previous one
			e.After = top.After
		}
		if own.Released && own.After.agrees(w.After) && !top.After.agrees(w.After) {
			e.After = own.After // it has left that to an agent that accepts anything
		}
		if w.Lasting {
			e.Boot = ""
		}
		return granted{e, fmt.Sprintf("keep %s also for this agent: agent %q has made it", e.Object, top.agent), false}, nil
	}
}

// grantFound is grantOne of an object that no agent has changed.
func (j *Journal) grantFound(l *log, e Entry, w Wish, top *claim) (g granted) {
	if l.hasOther(e, j.boot) {
		return g
	}
	if w.Adoptable && top == nil && j.isFirst(l) {
		if j.options.Adopt {
			e.Adopted, e.Before = true, State{}
			return granted{e, "adopt " + e.Object + ": it is as wanted, and is undone with the rest", true}
		}
		j.advise("%s is as wanted, and was not made by this agent: undoing leaves it, unless it is adopted", e.Object)
	}
	own, known := l.entries.get(e.id())
	if !w.Claim || known && own.Found && !j.outlived(own) && own.agrees(e) {
		return g
	}
	e.Found = true
	return granted{Entry: e, asIs: true}
}

// isFirst reports whether the agent claims the node for the first time.
func (j *Journal) isFirst(l *log) bool {
	current := l.current()
	return current.Generation == 0 || current.Generation == 1 && current.Name == j.options.Owner
}

// join records entries of objects that others have made, or that existed already.
func (l *log) join(entries ...Entry) error {
	for _, e := range entries {
		was, known := l.entries.get(e.id())
		anew := known && (was.Kept || was.Released || was.Found || was.Boot != e.Boot)
		if err := l.add(envelope{Record: recordEntry, Anew: anew}, e); err != nil {
			return err
		}
	}
	return nil
}

// above lists the directories of other agents that the objects of entries are in: they
// stay as long as these do.
func (j *Journal) above(ctx context.Context, l *log, entries []Entry, others map[string]claims) (dirs []Entry, err error) {
	for _, e := range entries {
		if e.Found { // none of its directories was made for it
			continue
		}
		for _, identity := range slices.Backward(e.above()) { // the outermost is the oldest
			top := others[identity].top()
			if top == nil {
				continue
			}
			pkg, _, _ := strings.Cut(e.Kind, "/")
			dir := Entry{Kind: pkg + "/dir", Object: strings.TrimPrefix(identity, "dir "), Identity: identity, Step: e.Step,
				Before: others[identity].wanting()[0].Before, After: top.After, Turn: top.Turn + 1, Boot: top.Boot, Done: true}
			own, known := l.entries.get(dir.id())
			handled := slices.ContainsFunc(j.options.Handlers, func(h Handler) bool {
				return slices.Contains(h.Kinds(), dir.Kind) && h.Owns(dir) == nil
			})
			seen := slices.ContainsFunc(append(dirs, entries...), func(o Entry) bool { return o.Identity == identity })
			if seen || !handled || known && !j.passed(own) || l.hasOther(dir, j.boot) {
				continue
			}
			if err := j.complete(ctx, l, &dir); err != nil {
				return nil, err
			}
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// above lists the identities of the directories that e's object is in, or on.
func (e Entry) above() (identities []string) {
	what, path, _ := strings.Cut(e.Identity, " ")
	if !isPath(path) || !slices.Contains([]string{"file", "dir", "mount", "pin", "layout"}, what) {
		return nil
	}
	if what != "mount" { // which is on a directory
		path = filepath.Dir(path)
	}
	for dir := path; dir != "/"; dir = filepath.Dir(dir) {
		identities = append(identities, "dir "+dir)
	}
	return identities
}
