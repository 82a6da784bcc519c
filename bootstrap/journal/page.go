// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"encoding/json"
	"time"
)

// page is the content of the journal at one time, for one reader.
type page struct {
	ID      string  // drawn when the journal is made; empty: it has no owner
	Owners  []owner // the last one is the node's
	Entries []Entry // of changed objects, oldest first
	Found   []Entry // of objects wanted as they were found
	Left    []Left  // for good, oldest first
}

// Left is a changed object that is left as it is for good.
type Left struct {
	Kind   string    `json:"kind"`
	Object string    `json:"object"`
	Value  string    `json:"value,omitempty"` // of the entry's After
	Time   time.Time `json:"time,omitzero"`   // when it was left
}

// owner is an owner that has claimed the node.
type owner struct {
	Name       string    `json:"name"`
	Generation int       `json:"generation"`
	Since      time.Time `json:"since"`
	Process    *claimant `json:"process,omitempty"` // that claimed it; nil: a pod's, or unknown

	unknown map[string]json.RawMessage // fields of a later version
	size    int                        // of its line in the file
}

// page returns the present content of l, without released entries.
func (l *log) page() *page {
	p := l.head()
	p.Entries = make([]Entry, 0, l.entries.len())
	for e := range l.entries.all {
		switch {
		case e.Released:
		case e.Found:
			p.Found = append(p.Found, e)
		default:
			p.Entries = append(p.Entries, e)
		}
	}
	return p
}

// head is page without the entries.
func (l *log) head() *page {
	p := &page{ID: l.header.ID, Owners: l.owners}
	for _, left := range l.left {
		p.Left = append(p.Left, left.Left)
	}
	return p
}

func (l *log) current() owner { return currentOf(l.owners) }

// current returns the node's owner, or the zero value if it has none.
func (p *page) current() owner { return currentOf(p.Owners) }

func currentOf(owners []owner) owner {
	if len(owners) == 0 {
		return owner{}
	}
	return owners[len(owners)-1]
}

func (l Left) is(e Entry) bool { return l.Kind == e.Kind && l.Object == e.Object }

// begin records entries, as the newest, in the running boot.
func (l *log) begin(boot string, entries ...Entry) error {
	for _, e := range entries {
		begun := e
		was, known := l.entries.get(e.id())
		if known {
			begun = was.again(e, boot)
		}
		if known && was.Kept && e.Before.Type != "" { // it comes back, and is then left
			if err := l.remember(e); err != nil {
				return err
			}
		}
		if err := l.add(envelope{Record: recordEntry, Anew: known}, begun); err != nil {
			return err
		}
	}
	return l.unleave(entries)
}

// unleave drops objects left for good that are gone since.
func (l *log) unleave(entries []Entry) error {
	for _, e := range entries {
		if e.Before.Type != "" || l.findLeft(e.Kind, e.Object) < 0 {
			continue
		}
		if err := l.add(envelope{Record: recordUnleft}, name{Kind: e.Kind, Object: e.Object}); err != nil {
			return err
		}
	}
	return nil
}

// put records how an entry is now.
func (l *log) put(e Entry) error { return l.add(envelope{Record: recordEntry}, e) }

// leave drops entries, and remembers their objects.
func (l *log) leave(forGood ...Entry) error {
	if err := l.forget(forGood...); err != nil {
		return err
	}
	return l.remember(forGood...)
}

// remember adds the objects of entries to those that are left.
func (l *log) remember(entries ...Entry) error {
	now := time.Now().UTC().Truncate(time.Second)
	for _, e := range entries {
		left := leftRecord{Left: Left{e.Kind, e.Object, e.After.Value, now}}
		if i := l.findLeft(e.Kind, e.Object); i >= 0 {
			left.unknown = l.left[i].unknown
		}
		if err := l.add(envelope{Record: recordLeft}, left); err != nil {
			return err
		}
	}
	return nil
}

// forget drops entries.
func (l *log) forget(gone ...Entry) error {
	for _, e := range gone {
		if !l.entries.has(e.id()) {
			continue
		}
		if err := l.add(envelope{Record: recordUndone}, name{e.Kind, e.Object, e.Step}); err != nil {
			return err
		}
	}
	return nil
}
