// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"slices"
	"strings"
)

// place is a side of a container: a mount namespace that is not the host's. Its zero value is
// the host. A namespace ends with the boot at the latest.
type place struct {
	Agent     string `json:"agent"`
	Namespace string `json:"namespace"`
	Boot      string `json:"boot"`
}

// in names the place in an ID: objects of two places are never the same.
func (p place) in(space string) string {
	if p == (place{}) {
		return space
	}
	return space + "@" + p.Agent + "@" + p.Namespace
}

// Local returns a view of the book for objects of this side of a container: those of the
// agent in a mount namespace, as its file in /proc/PID/ns is called. What was recorded in
// another namespace of the agent is dropped, and not undone, since it has gone with that. The
// view is closed with its book.
func (b *Book) Local(namespace string) *Book {
	if b == nil {
		return nil
	}
	local := *b
	local.place = place{b.ledger.Agent, namespace, b.boot}
	return &local
}

// view moves the records of one place to s.records, and leaves the others aside. What has gone
// with its namespace is dropped.
func (s *sheet) view(at place, boot string) {
	s.place = at
	s.aside = slices.DeleteFunc(s.aside, func(r *record) bool {
		if r.Place == at {
			s.records[r.id] = r
		}
		isOthers := r.Place == (place{}) || r.Place.Boot == boot && r.Place.Agent != at.Agent
		return r.Place == at || !isOthers
	})
}

// listed is the ID by which the head of the file lists an object of this view.
func (s *sheet) listed(id string) string {
	if s.place == (place{}) {
		return id
	}
	space, object, _ := strings.Cut(id, " ")
	return s.place.in(space) + " " + object
}

// listed is the ID by which the head lists the record's object.
func (r *record) listed() string { return r.Place.in(r.Space) + " " + string(r.Object) }

// all lists the records of all places, oldest first.
func (s *sheet) all() []*record {
	all := append(s.sorted(), s.aside...)
	slices.SortStableFunc(all, bySeq)
	return all
}
