// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Status is what is recorded.
type Status struct {
	Records []Record
	Damaged IDs // objects whose records cannot be read
}

// Record describes the record of an object.
type Record struct {
	Kind, Object   string
	Original, Left State
	Claims         []Claim // the last one prevails, unless it is loose
	Causes         IDs     // objects whose write has changed this one along
	Begun          bool    // a write was begun, and its run was killed
	Kept           string  // why it stays although its agent was undone
}

// Status returns what is recorded, oldest first. It needs no lock.
func (b *Book) Status(ctx context.Context) (st Status, err error) {
	err = b.look(ctx, func(s *sheet) error {
		st = Status{Damaged: slices.Sorted(maps.Keys(s.damaged))}
		for _, r := range s.sorted() {
			st.Records = append(st.Records, r.described())
		}
		return nil
	})
	return st, err
}

// described leaves out what only the engine needs.
func (r *record) described() Record {
	d := Record{
		Kind: r.Kind, Object: string(r.Object), Original: r.Original, Left: r.Left,
		Claims: r.Claims, Begun: r.Intent != nil, Kept: string(r.Kept),
	}
	for _, c := range r.Causes {
		d.Causes = append(d.Causes, string(c.ID))
	}
	return d
}

// Release drops the claims of an agent that has gone, and changes no object. It needs none
// of the agent's kinds. It returns the objects that stay as an agent made them although
// none wants them any more.
func (b *Book) Release(_ context.Context, agent string) (left []string, err error) {
	s, err := b.load()
	if err != nil {
		return nil, err
	}
	before := s.sorted()
	for _, w := range b.works(s, b.picked(Undo{Agent: agent})) {
		w.Claims = w.rest
	}
	s.aside = slices.DeleteFunc(s.aside, func(r *record) bool { return r.Place.Agent == agent })
	s.tidy()
	s.dismiss(agent)
	for _, r := range before {
		if s.records[r.id] == nil && !r.Left.Equal(r.Original) {
			left = append(left, string(r.Object))
		}
	}
	return left, b.save(s)
}

// Forget drops the agent's claims on objects, which then stay as they are, and records of
// these objects that cannot be read, whoever they are of.
func (b *Book) Forget(_ context.Context, ids ...string) error {
	s, err := b.load()
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		r := s.records[id]
		switch {
		case s.damaged[id]:
			delete(s.damaged, id)
		case r == nil || !slices.ContainsFunc(r.Claims, func(c Claim) bool { return c.Agent == b.ledger.Agent }):
			errs = append(errs, fmt.Errorf("%s: agent %q has no record of it", id, b.ledger.Agent))
		default:
			r.Claims, r.Kept = r.without(func(c Claim) bool { return c.Agent == b.ledger.Agent }), ""
		}
	}
	s.tidy()
	s.dismiss(b.ledger.Agent)
	return errors.Join(append(errs, b.save(s))...)
}

// Salvage drops all records that cannot be read: their objects stay as they are. It also
// makes a file usable whose first line is damaged, with the records that are whole.
func (b *Book) Salvage(context.Context) error {
	content, err := b.store.read()
	if err != nil || content == nil {
		return err
	}
	s, err := parse(content)
	if errors.Is(err, errHead) {
		s, err = salvage(content), nil
	}
	if err != nil {
		return err
	}
	clear(s.damaged)
	s.view(b.place, b.boot)
	return b.save(s)
}

// anyUnreadable names the objects whose records are damaged: whose they are is not known.
func (s *sheet) anyUnreadable() error {
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(s.damaged)) {
		errs = append(errs, s.unreadable(id))
	}
	return errors.Join(errs...)
}
