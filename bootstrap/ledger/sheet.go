// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/printable"
)

// The file has a line for its head, and one for each record, oldest first. Each begins with
// the first eight bytes of the SHA-256 of its JSON text, in hex:
//
//	SUM {"schema":1,...,"objects":["path /etc/x",...]}
//
//	SUM {"kind":"file","space":"path","object":"/etc/x",...}
//
// The head lists the objects by their IDs. The record of one whose line is not found whole
// is damaged, and named until it is forgotten; its line is not kept. The empty lines keep
// damage of a line break from damaging two records.

const (
	schema     = 1
	maxRecords = 20_000
	maxLine    = 4 << 20  // bytes: one value changes those of 10,000 links along
	maxFile    = 64 << 20 // bytes
)

// sheet is the content of the file.
type sheet struct {
	head    head
	last    int                // Seq of the newest record
	records map[string]*record // by ID
	damaged map[string]bool    // objects whose line is damaged, as the head lists them
	ended   map[string]int     // by agent: claims that a reboot has ended

	place place     // of the records
	aside []*record // of other places, or of whichever before one is viewed
}

type head struct {
	Schema  int               `json:"schema"`
	Objects []text            `json:"objects"`
	Agents  map[string]*agent `json:"agents,omitempty"`
	Staging []text            `json:"staging,omitempty"` // objects beside which a run prepares something
	Left    []text            `json:"left,omitempty"`    // marked objects that are recorded no more, and no orphans

	unknown unknown
}

func newSheet() *sheet {
	return &sheet{head: head{Schema: schema, Agents: map[string]*agent{}}, records: map[string]*record{}, damaged: map[string]bool{}, ended: map[string]int{}}
}

// shortSum finds damage. It does not stop an attacker, who could compute it: the directory's
// owner and mode do.
func shortSum(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// parse reads the content of the file, if there is one. An error is about all of it.
func parse(content []byte) (*sheet, error) {
	s := newSheet()
	if content == nil {
		return s, nil
	}
	line, rest, _ := bytes.Cut(content, []byte("\n"))
	raw := whole(line)
	if raw == nil {
		return nil, errHead
	}
	if err := unmarshal(raw, &s.head, &s.head.unknown); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	if s.head.Schema != schema {
		return nil, fmt.Errorf("%w: it has schema %d, and this program knows %d: use the program that wrote it",
			ErrUnreadable, s.head.Schema, schema)
	}
	if s.head.Agents == nil {
		s.head.Agents = map[string]*agent{}
	}
	maps.DeleteFunc(s.head.Agents, func(name string, a *agent) bool { return a == nil || !isLabel(name) })
	for _, id := range s.head.Objects {
		s.damaged[string(id)] = true // unless its line follows
	}
	for line := range bytes.SplitSeq(rest, []byte("\n")) {
		if r := readRecord(line); r != nil && s.damaged[r.listed()] {
			delete(s.damaged, r.listed())
			s.add(r)
		}
	}
	return s, nil
}

// clone returns a sheet that can be changed, of one that was just parsed.
func (s *sheet) clone() *sheet {
	c := newSheet()
	c.head, c.last, c.damaged = s.head, s.last, maps.Clone(s.damaged)
	c.head.Agents, c.head.Staging, c.head.Left = make(map[string]*agent), slices.Clone(s.head.Staging), slices.Clone(s.head.Left)
	for name, a := range s.head.Agents {
		c.head.Agents[name] = a.clone()
	}
	for _, r := range s.aside {
		c.aside = append(c.aside, r.clone())
	}
	return c
}

var errHead = fmt.Errorf("%w: its first line is damaged, without which no record counts: "+
	"copy the directory, then salvage the other lines", ErrUnreadable)

// add adds a record of whichever place. Damaged ones may have been newer than the last: their
// order is lost.
func (s *sheet) add(r *record) {
	s.aside = append(s.aside, r)
	s.last = max(s.last, r.Seq)
}

// readRecord reads a line. Nil: it is no record.
func readRecord(line []byte) *record {
	r := &record{}
	if raw := whole(line); raw == nil || unmarshal(raw, r, &r.unknown) != nil || r.Kind == "" || r.Space == "" {
		return nil
	}
	r.id = r.Space + " " + string(r.Object)
	return r
}

// whole returns the text of a line. Nil: it is damaged.
func whole(line []byte) []byte {
	sum, raw, _ := bytes.Cut(line, []byte(" "))
	if string(sum) != shortSum(raw) {
		return nil
	}
	return raw
}

// text is the content of the file. Its bounds keep one agent from making the file so large
// that no other can read it any more.
func (s *sheet) text() ([]byte, error) {
	if n := len(s.records) + len(s.aside); n > maxRecords {
		return nil, fmt.Errorf("%d objects are recorded, and %d is the limit: first undo what is no longer wanted", n, maxRecords)
	}
	var lines bytes.Buffer
	s.head.Objects = append([]text{}, convert[text](slices.Sorted(maps.Keys(s.damaged)))...)
	for _, r := range s.all() {
		raw, err := marshal(r, r.unknown)
		if err != nil {
			return nil, fmt.Errorf("record %s: %w", r.listed(), err)
		}
		if len(raw) > maxLine {
			return nil, fmt.Errorf("record %s: it has %d bytes, and %d is the limit", r.listed(), len(raw), maxLine)
		}
		s.head.Objects = append(s.head.Objects, text(r.listed()))
		writeLine(&lines, raw)
	}
	raw, err := marshal(s.head, s.head.unknown)
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	writeLine(&all, raw)
	all.Write(lines.Bytes())
	if all.Len() > maxFile {
		return nil, fmt.Errorf("the records have %d bytes, and %d is the limit: first undo what is no longer wanted", all.Len(), maxFile)
	}
	return all.Bytes(), nil
}

func writeLine(w *bytes.Buffer, raw []byte) {
	w.WriteString(shortSum(raw))
	w.WriteByte(' ')
	w.Write(raw)
	w.WriteString("\n\n")
}

// salvage returns the records of whole lines, whatever the first line says.
func salvage(content []byte) *sheet {
	s := newSheet()
	for line := range bytes.SplitSeq(content, []byte("\n")) {
		if r := readRecord(line); r != nil {
			s.add(r)
		}
	}
	return s
}

// sorted lists the records, oldest first.
func (s *sheet) sorted() []*record {
	return slices.SortedFunc(maps.Values(s.records), bySeq)
}

// of returns the record of an object, which is made if there is none: now is its original.
func (s *sheet) of(k *Kind, object string, now State) *record {
	id := k.id(object)
	r := s.records[id]
	if r == nil {
		s.last++
		r = &record{
			Kind: k.Name, Space: k.space(), Object: text(object), Place: s.place, Seq: s.last,
			Original: now, Left: now.bare(), LeftAt: time.Now(), id: id,
		}
		s.records[id] = r
		s.head.Left = slices.DeleteFunc(s.head.Left, func(left text) bool { return string(left) == s.listed(id) })
	}
	return r
}

// unreadable returns an error if the object's record is damaged.
func (s *sheet) unreadable(id string) error {
	if s.damaged[s.listed(id)] {
		return fmt.Errorf("%s: %w: look at the object, and forget the record", printable.Line(id), ErrUnreadable)
	}
	return nil
}

// isEmpty reports whether there is nothing to keep.
func (s *sheet) isEmpty() bool {
	return len(s.records)+len(s.aside)+len(s.damaged)+len(s.head.Agents)+len(s.head.Left)+len(s.head.Staging) == 0
}

// tidy drops records that no step wants, with what they have changed along.
func (s *sheet) tidy() {
	s.aside = slices.DeleteFunc(s.aside, func(r *record) bool { return len(r.Claims)+len(r.Causes) == 0 })
	for again := true; again; {
		again = false
		for _, r := range s.sorted() {
			r.Causes = slices.DeleteFunc(r.Causes, func(c cause) bool {
				return s.records[string(c.ID)] == nil && !s.damaged[s.listed(string(c.ID))]
			})
			if len(r.Claims)+len(r.Causes) == 0 {
				delete(s.records, r.id)
				s.bequeathIntent(r)
				again = true
			}
		}
	}
}

// bequeathIntent leaves to other records what a killed run may have changed along with an
// object that was released or forgotten since.
func (s *sheet) bequeathIntent(r *record) {
	if r.Intent == nil {
		return
	}
	for _, side := range r.Intent.Along {
		if o := s.records[side.id()]; o != nil && o.Intent == nil {
			o.Intent = &intent{To: side.To, Was: side.Was, Undo: r.Intent.Undo}
		}
	}
}

// reboot drops what ended with another boot. The objects are as the new boot has made them,
// and so nothing is undone.
func (s *sheet) reboot(boot string) {
	before := maps.Clone(s.records)
	s.changeAgain(boot)
	for _, r := range s.records {
		for _, c := range r.Claims {
			if c.Boot != "" && c.Boot != boot {
				s.ended[c.Agent]++
			}
		}
		r.Claims = slices.DeleteFunc(r.Claims, func(c claim) bool { return c.Boot != "" && c.Boot != boot })
		r.Causes = slices.DeleteFunc(r.Causes, func(c cause) bool { return c.Boot != "" && c.Boot != boot })
	}
	s.tidy()
	for _, r := range s.records {
		if r.Intent == nil {
			continue
		}
		for n, side := range r.Intent.Along { // where its record has ended, an agent has left it as it was
			if o := before[side.id()]; o != nil && s.records[side.id()] == nil {
				r.Intent.Along[n].Was = o.Original
			}
		}
	}
}

// changeAgain moves to this boot what objects that outlast it have changed again, with what
// that has changed along.
func (s *sheet) changeAgain(boot string) {
	moved := map[string]bool{}
	for id, r := range s.records {
		for i, c := range r.Claims {
			by := s.records[string(c.Again)]
			if c.Boot != "" && c.Boot != boot && by != nil && by.boot() == "" && !by.Left.Equal(by.Original) {
				r.Claims[i].Boot, moved[id] = boot, true
			}
		}
	}
	for _, r := range s.records {
		for i, c := range r.Causes {
			if moved[string(c.ID)] {
				r.Causes[i].Boot = boot
			}
		}
	}
}

// obsolete returns which of the store's files are no longer needed: contents that no record
// names, and reports of agents that have gone.
func (s *sheet) obsolete() func(name string) bool {
	needed := map[string]bool{}
	add := func(s State) {
		if s.kept {
			needed[contentPrefix+s.SHA256] = true
		}
	}
	for name := range s.head.Agents {
		needed[reportPrefix+name] = true
	}
	for _, r := range s.all() {
		add(r.Original)
		for _, c := range r.Claims {
			add(c.To)
		}
		if r.Intent == nil {
			continue
		}
		add(r.Intent.Was)
		for _, a := range r.Intent.Along {
			add(a.Was)
			if a.Back != nil {
				add(*a.Back)
			}
		}
	}
	return func(name string) bool {
		return !needed[name] && (strings.HasPrefix(name, contentPrefix) || strings.HasPrefix(name, reportPrefix))
	}
}

// claimedBefore reports whether a step has claims, and so adopts nothing any more. They
// could be in damaged records.
func (s *sheet) claimedBefore(agent, step string) bool {
	for _, r := range s.records {
		if r.claim(agent, step) != nil {
			return true
		}
	}
	return len(s.damaged) > 0
}
