// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/printable"
)

// Status is what is recorded.
type Status struct {
	Records []Record `json:"records,omitempty"`
	Damaged []string `json:"damaged,omitempty"` // the IDs of objects whose records cannot be read
	Left    []string `json:"left,omitempty"`    // the IDs of marked objects that were left in place
}

// Record describes the record of an object. In IDs, and in JSON, what JSON cannot hold has the
// escapes of Go. JSON has no content of files, which may be secret.
type Record struct {
	Kind      string   `json:"kind"`
	Object    string   `json:"-"`
	ID        string   `json:"id"`
	Namespace string   `json:"namespace,omitempty"` // of the container that has the object; empty: the host
	Original  State    `json:"original"`
	Left      State    `json:"left"`
	Claims    []Claim  `json:"claims,omitempty"` // the last one prevails, unless it is loose
	Causes    []string `json:"causes,omitempty"` // the IDs of objects whose write has changed this one along
	Begun     bool     `json:"begun,omitempty"`  // a write was begun, and its run was killed
	Kept      string   `json:"kept,omitempty"`   // why it stays although its agent was undone

	unknown bool // this program does not know the kind
}

// Claim is what one step of one agent wants.
type Claim struct {
	Agent, Step string
	To          State
	Adopted     bool // it was found as wanted, and counts as made

	claim claim
}

// String describes the record for people, in one line: what the object was, how it was left,
// and which steps of which agents want it.
func (r Record) String() string {
	var wants []string
	for _, c := range r.Claims {
		want := c.Agent + "/" + c.Step
		if c.Adopted {
			want += " (adopted)"
		}
		wants = append(wants, want)
	}
	object := r.Kind + " " + r.Object
	if r.Namespace != "" {
		object += " in a container"
	}
	line := fmt.Sprintf("%s: was %s, left as %s; wanted by %s", object, r.Original.words(), r.Left.words(), strings.Join(append(wants, r.Causes...), ", "))
	if r.Begun {
		line += "; a run was interrupted while it wrote this"
	}
	if r.Kept != "" {
		line += "; kept: " + r.Kept
	}
	return printable.Line(line)
}

// words describes a state. The value of a mount is for programs.
func (s State) words() string {
	switch s.Type {
	case "":
		return "absent"
	case "value", "symlink":
		return s.Value
	}
	words := s.Type
	if s.SHA256 != "" {
		words += fmt.Sprintf(" of %d bytes", s.Size)
	}
	if s.Mode != 0 {
		words += fmt.Sprintf(" %04o", s.Mode)
	}
	return words
}

// MarshalJSON writes what the file has of a record, but for contents.
func (r Record) MarshalJSON() ([]byte, error) {
	type plain Record
	claims := make([]claim, len(r.Claims))
	for i, c := range r.Claims {
		claims[i] = c.claim
		claims[i].To.Content = nil
	}
	r.Original.Content, r.Left.Content = nil, nil
	return json.Marshal(struct {
		Object text `json:"object"`
		plain
		Claims  []claim `json:"claims,omitempty"`
		Unknown bool    `json:"unknown_kind,omitempty"`
	}{text(r.Object), plain(r), claims, r.unknown})
}

// Status returns what is recorded, oldest first, also of objects inside containers. It
// needs no lock.
func (b *Book) Status(ctx context.Context) (st Status, err error) {
	b = b.orAlone()
	err = b.look(ctx, func(s *sheet) error {
		st = Status{Damaged: escaped(convert[text](slices.Sorted(maps.Keys(s.damaged)))), Left: escaped(s.head.Left)}
		for _, r := range s.all() {
			d := b.described(r)
			d.unknown = b.kinds[d.Kind] == nil
			st.Records = append(st.Records, d)
		}
		return nil
	})
	return st, err
}

// described leaves out what only the engine needs. The original's content can be read.
func (b *Book) described(r *record) Record {
	d := Record{
		Kind: r.Kind, Object: string(r.Object), ID: text(r.listed()).escaped(), Namespace: r.Place.Namespace, Original: b.writable(r.Original), Left: r.Left,
		Begun: r.Intent != nil, Kept: string(r.Kept),
	}
	for _, c := range r.Claims {
		d.Claims = append(d.Claims, c.shown())
	}
	for _, c := range r.Causes {
		d.Causes = append(d.Causes, c.ID.escaped())
	}
	return d
}

func (c claim) shown() Claim { return Claim{c.Agent, c.Step, c.To, c.Adopted, c} }

func escaped(ids []text) (all []string) {
	for _, id := range ids {
		all = append(all, id.escaped())
	}
	return all
}

// Release drops the claims of an agent that has gone, and changes no object. It needs none
// of the agent's kinds. It returns the objects that stay as an agent made them although
// none wants them any more.
func (b *Book) Release(_ context.Context, agent string) (left []string, err error) {
	s, err := b.load()
	if err != nil {
		return nil, err
	}
	for _, w := range b.works(s, func(_ *record, c claim) bool { return c.Agent == agent }) {
		w.Claims = w.rest
	}
	s.aside = slices.DeleteFunc(s.aside, func(r *record) bool { return r.Place.Agent == agent })
	return b.drop(s, agent), b.save(s)
}

// drop drops records and agents without claims. It returns the objects that stay as agents
// made them.
func (b *Book) drop(s *sheet, agents ...string) (left []string) {
	before := s.sorted()
	s.tidy()
	for _, r := range before {
		if s.records[r.id] != nil || r.Left.Equal(r.Original) {
			continue
		}
		left = append(left, string(r.Object))
		if k := b.kinds[r.Kind]; k != nil && k.Find != nil {
			s.head.Left = append(s.head.Left, text(r.listed()))
			s.head.Left = s.head.Left[max(0, len(s.head.Left)-maxLeft):]
		}
	}
	claiming := s.claiming()
	for _, name := range agents {
		if !claiming[name] {
			delete(s.head.Agents, name) // with its owner and report
		}
	}
	return left
}

// maxLeft is how many objects are remembered that were left in place.
const maxLeft = 1000

// updateLeft remembers originals that came back and carry a mark themselves, such as a drop-in
// that an administrator had edited, and drops objects that were left in place and have gone.
func (b *Book) updateLeft(ctx context.Context, s *sheet, works []*work) {
	left := slices.Clone(s.head.Left)
	for _, w := range works {
		if w.err == nil && w.kind != nil && w.kind.Find != nil && s.records[w.id] == nil && !w.Original.IsZero() {
			left = append(left, text(w.listed()))
		}
	}
	if len(left) == 0 {
		return
	}
	found, spaces, err := b.find(ctx, s)
	if err != nil {
		return
	}
	s.head.Left = slices.DeleteFunc(left, func(id text) bool {
		space, _, _ := strings.Cut(string(id), " ")
		_, ok := found[string(id)]
		return spaces[space] && !ok
	})
}

// Forget drops the agent's claims on objects, by their IDs, which then stay as they are, and records of
// these objects that cannot be read, whoever they are of.
func (b *Book) Forget(_ context.Context, ids ...string) error {
	s, err := b.load()
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		if raw := text(""); s.find(id) == nil && !s.damaged[id] && raw.UnmarshalText([]byte(id)) == nil {
			id = string(raw)
		}
		r := s.find(id)
		switch {
		case s.damaged[id]:
			delete(s.damaged, id)
		case r == nil || !r.isOf(b.ledger.Agent):
			errs = append(errs, fmt.Errorf("%s: agent %q has no record of it", id, b.ledger.Agent))
		default:
			r.Claims, r.Kept = r.without(func(c claim) bool { return c.Agent == b.ledger.Agent }), ""
		}
	}
	b.drop(s, b.ledger.Agent)
	return errors.Join(append(errs, b.save(s))...)
}

// find returns the record of an object, of whichever place, by the ID that the head lists.
// Nil: there is none.
func (s *sheet) find(id string) *record {
	for _, r := range s.all() {
		if r.listed() == id {
			return r
		}
	}
	return nil
}

// Salvage drops all records that cannot be read: their objects stay as they are. It also
// makes a file usable whose first line is damaged, with the records that are whole.
func (b *Book) Salvage(context.Context) error {
	content, err := b.read()
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

// anyUnreadable names the objects whose records are damaged: whose they are is not known. The
// view of a container leaves that to the host's.
func (s *sheet) anyUnreadable() error {
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(s.damaged)) {
		if s.place == (place{}) {
			errs = append(errs, s.unreadable(id))
		}
	}
	return errors.Join(errs...)
}
