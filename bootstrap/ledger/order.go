// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"path"
	"slices"
	"strings"
)

// pathSpace is the Space of kinds whose objects are paths.
const pathSpace = "path"

// above lists the IDs of the directories that lead to a path, the nearest first.
func above(id string) (ids []string) {
	name, isPath := strings.CutPrefix(id, pathSpace+" ")
	for isPath && len(name) > 1 {
		name = path.Dir(name)
		ids = append(ids, pathSpace+" "+name)
	}
	return ids
}

// needed lists the IDs of the objects that the record's object needs: those that its steps
// name, and the directories that lead to it.
func (r *record) needed() (ids []string) {
	for _, c := range r.Claims {
		ids = append(ids, convert[string](c.Needs)...)
	}
	return append(ids, above(r.id)...)
}

// changedBy lists the IDs of the objects that have changed the record's object along, or do so
// at each boot.
func (r *record) changedBy() (ids []string) {
	for _, c := range r.Causes {
		ids = append(ids, string(c.ID))
	}
	for _, c := range r.Claims {
		ids = append(ids, string(c.Again))
	}
	return ids
}

// works lists the records that lose the picked claims, and those that were only changed
// along with records that go, in the order in which they are undone.
func (b *Book) works(s *sheet, picked func(*record, claim) bool) []*work {
	all := map[string]*work{}
	var newest []*work
	for _, r := range slices.Backward(s.sorted()) {
		pick := func(c claim) bool { return picked(r, c) }
		if slices.ContainsFunc(r.Claims, pick) {
			dropped := r.without(func(c claim) bool { return !pick(c) })
			top := prevailing(dropped)
			all[r.id] = &work{record: r, agent: top.Agent, step: top.Step, kind: b.kinds[r.Kind], rest: r.without(pick)}
			newest = append(newest, all[r.id])
		}
	}
	s.inherit(inOrder(newest), all)
	for again := true; again; {
		again = false
		for _, r := range slices.Backward(s.sorted()) {
			w, claims := all[r.id], r.Claims
			if w != nil {
				claims = w.rest
			}
			if len(claims) > 0 || w != nil && w.restores || !s.losesCauses(r, all) {
				continue
			}
			if w == nil {
				w = &work{record: r, kind: b.kinds[r.Kind]}
				all[r.id], newest = w, append(newest, w)
			}
			w.restores, again = true, true
		}
	}
	return inOrder(newest)
}

// inherit gives claims to the steps that need an object which its last one no longer wants:
// what another agent has put into a directory keeps the directory, until that agent is
// undone. A claim says so in the file, so that it also holds when the record of what needs
// the object is dropped first: by a reboot, or since its agent was released.
func (s *sheet) inherit(ordered []*work, works map[string]*work) {
	heirs := map[string][]claim{}
	bequeath := func(r *record, claims []claim) {
		for _, id := range r.needed() {
			if works[id] != nil {
				heirs[id] = append(heirs[id], claims...)
			}
		}
	}
	for _, r := range s.records {
		if works[r.id] == nil {
			bequeath(r, r.Claims)
		}
	}
	for _, w := range ordered {
		made := w.Left
		if made.IsZero() { // another program may have made it as it is wanted
			made = prevailing(w.Claims).To
		}
		if top := prevailing(w.rest); top != nil && top.To.IsZero() { // then it is to go
			made = State{}
		}
		for _, c := range heirs[w.id] {
			claims := func(o claim) bool { return o.is(c.Agent, c.Step) }
			if !made.IsZero() && !slices.ContainsFunc(w.rest, claims) {
				w.rest = append(w.rest, claim{Agent: c.Agent, Step: c.Step, To: made.bare(), Loose: true, Boot: w.boot()})
			}
		}
		bequeath(w.record, w.rest)
	}
}

// losesCauses reports whether no cause of the record remains: what others have changed
// causes nothing any more.
func (s *sheet) losesCauses(r *record, works map[string]*work) bool {
	return !slices.ContainsFunc(r.Causes, func(c cause) bool {
		w, by := works[string(c.ID)], s.records[string(c.ID)]
		return (w == nil || !w.restores) && (by == nil || by.Kept == "")
	})
}

// inOrder moves each work before those that it needs, and after those that have changed it
// along, and otherwise keeps the order. Needs that form a circle are followed once.
func inOrder(works []*work) (ordered []*work) {
	first := map[string][]*work{} // what needs an object, by its ID
	byID := map[string]*work{}
	for _, w := range works {
		byID[w.id] = w
		for _, id := range w.needed() {
			first[id] = append(first[id], w)
		}
	}
	for _, w := range works {
		for _, id := range w.changedBy() {
			if by := byID[id]; by != nil {
				first[w.id] = append(first[w.id], by)
			}
		}
	}
	seen := map[string]bool{}
	var visit func(w *work)
	visit = func(w *work) {
		if seen[w.id] {
			return
		}
		seen[w.id] = true
		for _, by := range first[w.id] {
			visit(by)
		}
		ordered = append(ordered, w)
	}
	for _, w := range works {
		visit(w)
	}
	return ordered
}
