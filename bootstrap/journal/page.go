// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"
)

// schema is the version of the format. Fields may be added within one version; a
// program that does not know them keeps them.
const schema = 2

// maxOwners is how many owners are remembered: an older one that comes back is
// taken for a new one.
const maxOwners = 128

// page is the journal on disk.
type page struct {
	Schema  int     `json:"schema"`
	ID      string  `json:"id,omitempty"`     // drawn when the journal is made
	Owners  []owner `json:"owners,omitempty"` // the last one is the node's
	Entries []Entry `json:"entries"`          // oldest first
	Left    []Left  `json:"left,omitempty"`   // for good, oldest first

	unknown map[string]json.RawMessage
}

// maxLeft is how many objects are remembered that are left for good.
const maxLeft = 1000

// Left is an object that was changed and is left so for good.
type Left struct {
	Kind   string    `json:"kind"`
	Object string    `json:"object"`
	Value  string    `json:"value,omitempty"` // of the entry's After
	Time   time.Time `json:"time,omitzero"`   // when that was said
}

// owner is somebody who has claimed the node.
type owner struct {
	Name       string    `json:"name"`
	Generation int       `json:"generation"`
	Since      time.Time `json:"since"`
	Process    *claimant `json:"process,omitempty"` // that claimed it; nil: a pod's, or unknown
}

func (p *page) UnmarshalJSON(text []byte) (err error) {
	type plain page
	p.unknown, err = unmarshalKeeping(text, (*plain)(p))
	return err
}

func (p page) MarshalJSON() ([]byte, error) {
	type plain page
	return marshalWith(plain(p), p.unknown)
}

// jsonNames yields the JSON names of v's fields.
func jsonNames(v any) iter.Seq[string] {
	t := reflect.TypeOf(v).Elem()
	return func(yield func(string) bool) {
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if name != "" && !yield(name) {
				return
			}
		}
	}
}

func decode(raw []byte) (*page, error) {
	var version struct{ Schema int }
	if err := json.Unmarshal(raw, &version); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	if version.Schema != schema {
		return nil, fmt.Errorf("%w: it has schema %d, and this version reads %d", ErrUnreadable, version.Schema, schema)
	}
	p := &page{}
	if err := json.Unmarshal(raw, p); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	at := p.positions()
	for i, e := range p.Entries {
		if err := e.validate(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
		if at[e.id()] != i {
			return nil, fmt.Errorf("%w: %s of step %s is there twice", ErrUnreadable, e, e.Step)
		}
	}
	return p, nil
}

// current returns the node's owner, or the zero value if it has none.
func (p *page) current() owner {
	if len(p.Owners) == 0 {
		return owner{}
	}
	return p.Owners[len(p.Owners)-1]
}

func (p *page) index(e Entry) int { return slices.IndexFunc(p.Entries, e.same) }

// positions says where each entry is, for callers that look up many.
func (p *page) positions() map[id]int {
	at := make(map[id]int, len(p.Entries))
	for i, e := range p.Entries {
		at[e.id()] = i
	}
	return at
}

// begin appends entries, as the newest, in the running boot.
func (p *page) begin(boot string, entries ...Entry) {
	at := p.positions()
	for _, e := range entries {
		if i, known := at[e.id()]; known {
			if p.Entries[i].Kept && e.Before.Type != "" { // it comes back, and is left then
				p.remember(e)
			}
			e = p.Entries[i].again(e, boot)
		}
		at[e.id()] = len(p.Entries)
		p.Entries = append(p.Entries, e)
	}
	var last []Entry
	for i, e := range p.Entries {
		if at[e.id()] == i {
			last = append(last, e)
		}
	}
	p.Entries = last
	p.Left = slices.DeleteFunc(p.Left, func(l Left) bool { // what has gone since
		return slices.ContainsFunc(entries, func(e Entry) bool { return l.is(e) && e.Before.Type == "" })
	})
}

func (l Left) is(e Entry) bool { return l.Kind == e.Kind && l.Object == e.Object }

// leave drops entries, and remembers their objects.
func (p *page) leave(forGood ...Entry) {
	p.forget(forGood...)
	p.remember(forGood...)
}

// remember adds the objects of entries to those that are left.
func (p *page) remember(entries ...Entry) {
	for _, e := range entries {
		p.Left = slices.DeleteFunc(p.Left, func(l Left) bool { return l.is(e) })
		p.Left = append(p.Left, Left{e.Kind, e.Object, e.After.Value, time.Now().UTC().Truncate(time.Second)})
	}
	p.Left = p.Left[max(0, len(p.Left)-maxLeft):]
}

func (p *page) forget(gone ...Entry) {
	ids := make(map[id]bool, len(gone))
	for _, e := range gone {
		ids[e.id()] = true
	}
	p.Entries = slices.DeleteFunc(p.Entries, func(e Entry) bool { return ids[e.id()] })
}

func (p *page) clone() *page {
	c := *p
	c.Owners, c.Entries, c.Left = slices.Clone(p.Owners), slices.Clone(p.Entries), slices.Clone(p.Left)
	return &c
}
