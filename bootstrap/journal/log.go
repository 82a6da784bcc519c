// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"slices"
)

// schema is the version of the format. Within one version, fields and kinds of records
// may be added: a program that does not know them keeps them, and obeys the rest.
const schema = 3

// The bounds of a journal. A node's plan records some hundred entries of half a KiB.
const (
	maxEntries = 20_000
	maxRecord  = 64 << 10 // bytes of one record: content of 4 KiB, names, and attributes
	maxLive    = 8 << 20  // bytes of all records that count: a reader holds them in memory
	maxOwners  = 128      // an older one that returns counts as a new one
	maxLeft    = 1000     // objects that are left for good: of more, the oldest are forgotten
	maxBlobs   = 2000     // files of kept content: a listing of them stays short
	maxKeptAll = 4 << 30  // bytes of kept content; each file has up to maxKept
)

// maxJournal is how many bytes are read: a writer replaces the file before it has them.
const maxJournal = 4 * maxLive

// slack is how many bytes of records that no longer count are kept at least.
const slack = 16 << 10

// bounds are the bounds, where tests set them lower.
type bounds struct {
	entries, record int
	live            int64
	blobs           int
	kept            int64
}

var bound = bounds{maxEntries, maxRecord, maxLive, maxBlobs, maxKeptAll}

// The kinds of records. A record is a JSON object with its kind in "record", and "more"
// if the following records belong to the same change, which counts as a whole or not at
// all. A record of an unknown kind is kept and otherwise ignored if "critical" is false;
// otherwise it is an error.
const (
	recordJournal = "journal" // the first one: header
	recordOwner   = "owner"   // the next owner or, for a known generation, its present state
	recordEntry   = "entry"   // a new Entry, which is the last, or the present state of a recorded one; with "anew", it becomes the last
	recordUndone  = "undone"  // drops an entry
	recordLeft    = "left"    // Left: an object left for good
	recordUnleft  = "unleft"  // drops an object left for good
)

// envelope has the fields of all records, whatever their kind.
type envelope struct {
	Record   string `json:"record"`
	Critical *bool  `json:"critical"` // nil: true
	More     bool   `json:"more"`
	Anew     bool   `json:"anew"`
}

// header is the first record.
type header struct {
	Schema int    `json:"schema"`
	Agent  string `json:"agent"`
	ID     string `json:"id,omitempty"` // drawn when the journal is made; empty: it has no owner

	unknown map[string]json.RawMessage
}

// name identifies the entry, or object left for good, of a record.
type name struct {
	Kind   string `json:"kind"`
	Object string `json:"object"`
	Step   string `json:"step,omitempty"`
}

// leftRecord is a Left in the file.
type leftRecord struct {
	Left
	unknown map[string]json.RawMessage
	size    int
}

// other is a record of a kind that this version does not know.
type other struct{ text json.RawMessage }

// log is the content of the journal, built from the records of the file.
type log struct {
	header  header
	owners  []owner // the last one is the node's
	entries table
	left    []leftRecord // oldest first
	others  []other
	words   map[string]string // which many entries have, each in memory once

	damage  error       // why the rest of the file was not read
	seen    fs.FileInfo // the file as it was read or written last; nil: there is none
	offset  int64       // of its end, without the incomplete line of a killed writer
	sum     string      // of its last line
	records int         // in it
	live    int64       // bytes of records that count
	pending []line      // records that are not in it yet
	rewrite bool        // records in the middle of it have changed, too
}

// line is a record that is to be written.
type line struct {
	envelope
	body []byte // JSON
}

func newLog(agent string) *log {
	return &log{header: header{Schema: schema, Agent: agent}, entries: newTable(), words: map[string]string{}}
}

// text is the line's text: the fields of the envelope and those of the body. The body of
// a record of an unknown kind has both.
func (l line) text() []byte {
	if l.Record == "" {
		return l.body
	}
	text := fmt.Appendf(nil, `{"record":%q`, l.Record)
	if l.More {
		text = append(text, `,"more":true`...)
	}
	if l.Anew {
		text = append(text, `,"anew":true`...)
	}
	return append(append(text, ','), l.body[1:]...)
}

// add changes l by a record that save will write.
func (l *log) add(e envelope, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode a record: %w", err)
	}
	written := line{e, body}
	if err := l.fits(written, v); err != nil {
		return err
	}
	l.apply(v, e.Anew, written.size())
	l.pending = append(l.pending, written)
	return nil
}

// size is about the bytes of the line in the file.
func (l line) size() int { return len(l.body) + len(`12345 0123456789abcdef {"record":"entry",`) + 1 }

// fits returns an error if the journal would exceed one of its bounds by a record. A
// recorded entry may grow a little beyond the bound of all: its change has been made.
func (l *log) fits(written line, v any) error {
	if len(written.body) > bound.record {
		return fmt.Errorf("record %v: it would have %d bytes, and at most %d are read: shorten the description of the object, or keep content beside the journal", v, len(written.body), bound.record)
	}
	entry, isEntry := v.(Entry)
	if !isEntry {
		return nil
	}
	limit, known := bound.live, l.entries.has(entry.id())
	if known {
		limit += limit / 4
	}
	switch {
	case !known && l.entries.len() >= bound.entries:
		return fmt.Errorf("record %s: %d entries are recorded, and a journal has at most %d: first undo entries that are no longer wanted", entry, l.entries.len(), bound.entries)
	case l.live+int64(written.size()) > limit:
		return fmt.Errorf("record %s: the journal has %d bytes, and at most %d: first undo entries that are no longer wanted", entry, l.live, limit)
	}
	return nil
}

// apply changes l by a record whose line has size bytes.
func (l *log) apply(v any, anew bool, size int) {
	switch v := v.(type) {
	case Entry:
		l.live += int64(l.entries.put(v, anew, size))
	case name:
		if v.Step != "" {
			l.live -= int64(l.entries.drop(id{v.Kind, v.Object, v.Step}))
			return
		}
		l.dropLeft(v.Kind, v.Object)
	case owner:
		l.putOwner(v, size)
	case leftRecord:
		l.putLeft(v, size)
	case other:
		l.others = append(l.others, v)
		l.live += int64(size)
	}
}

func (l *log) putOwner(o owner, size int) {
	o.size = size
	l.live += int64(size)
	if i := slices.IndexFunc(l.owners, func(was owner) bool { return was.Generation == o.Generation }); i >= 0 {
		l.live -= int64(l.owners[i].size)
		l.owners = slices.Clone(l.owners) // readers have it
		l.owners[i] = o
		return
	}
	l.owners = append(slices.Clip(l.owners), o)
	for len(l.owners) > maxOwners {
		l.live -= int64(l.owners[0].size)
		l.owners = l.owners[1:]
	}
}

func (l *log) putLeft(left leftRecord, size int) {
	l.dropLeft(left.Kind, left.Object)
	left.size = size
	l.live += int64(size)
	l.left = append(l.left, left)
	if len(l.left) > maxLeft {
		l.dropLeft(l.left[0].Kind, l.left[0].Object)
	}
}

func (l *log) dropLeft(kind, object string) {
	if i := l.findLeft(kind, object); i >= 0 {
		l.live -= int64(l.left[i].size)
		l.left = slices.Delete(l.left, i, i+1)
	}
}

func (l *log) findLeft(kind, object string) int {
	return slices.IndexFunc(l.left, func(r leftRecord) bool { return r.Kind == kind && r.Object == object })
}

// all lists the records that rebuild l, the header first.
func (l *log) all(yield func(envelope, any) bool) {
	ok := yield(envelope{Record: recordJournal}, l.header)
	for _, o := range l.owners {
		ok = ok && yield(envelope{Record: recordOwner}, o)
	}
	for _, o := range l.others {
		ok = ok && yield(envelope{}, o)
	}
	for _, left := range l.left {
		ok = ok && yield(envelope{Record: recordLeft}, left)
	}
	for e := range l.entries.all {
		ok = ok && yield(envelope{Record: recordEntry}, e)
	}
}

// wasteful reports whether the file would have more obsolete records than current ones.
// It is replaced then, which costs as much as the appends since.
func (l *log) wasteful() bool {
	size := l.offset
	for _, p := range l.pending {
		size += int64(p.size())
	}
	return size > 2*max(l.live, 0)+slack || size > maxJournal/2
}

// read changes l by the records of r: those of a whole file, or those appended to it.
func (l *log) read(r *lineReader) error {
	at := l.records
	var change []func() error // the effects of the records of one change
	for {
		begin := r.n
		text, err := r.next()
		if at > 0 && (err == io.EOF || err == io.ErrUnexpectedEOF) {
			return nil
		}
		at++
		var e envelope
		if err == nil && at == 1 {
			err = l.readHeader(text, int(r.n))
		} else if err == nil {
			var v any
			e, v, err = decodeRecord(text)
			size := int(r.n - begin)
			change = append(change, func() error { return l.accept(e, v, size) })
		}
		for i := 0; err == nil && !e.More && i < len(change); i++ {
			err = change[i]()
		}
		if err != nil {
			return fmt.Errorf("record %d: %w", at, err)
		}
		if !e.More {
			change, l.offset, l.sum, l.records = nil, r.n, r.sum, at
		}
	}
}

func (l *log) readHeader(text []byte, size int) error {
	var version struct {
		Record string
		Schema int
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return err
	}
	if version.Record != recordJournal || version.Schema != schema {
		return fmt.Errorf("it is a %q of schema %d, and this version reads a %q of schema %d", version.Record, version.Schema, recordJournal, schema)
	}
	var h header
	if err := json.Unmarshal(text, &h); err != nil {
		return err
	}
	if h.Agent != l.header.Agent {
		return fmt.Errorf("it is that of agent %q", h.Agent)
	}
	l.header, l.live = h, int64(size)
	return nil
}

// accept is apply of a record that was read.
func (l *log) accept(e envelope, v any, size int) error {
	if entry, ok := v.(Entry); ok {
		entry.intern(l.words)
		v = entry
		if err := entry.validate(); err != nil {
			return err
		}
		if l.entries.len() >= bound.entries && !l.entries.has(entry.id()) {
			return fmt.Errorf("more than %d entries", bound.entries)
		}
	}
	l.apply(v, e.Anew, size)
	return nil
}

// decodeRecord decodes any record but the first.
func decodeRecord(text []byte) (e envelope, v any, err error) {
	if err := json.Unmarshal(text, &e); err != nil {
		return e, nil, err
	}
	switch e.Record {
	case recordEntry:
		v, err = decodeAs[Entry](text)
	case recordOwner:
		v, err = decodeAs[owner](text)
	case recordLeft:
		v, err = decodeAs[leftRecord](text)
	case recordUndone, recordUnleft:
		v, err = decodeAs[name](text)
		if n := v.(name); err == nil && (n.Step != "") != (e.Record == recordUndone) {
			err = fmt.Errorf("a record %q of step %q", e.Record, n.Step)
		}
	default:
		if e.Critical == nil || *e.Critical {
			return e, nil, fmt.Errorf("it is a %q, which a later version has written and this version must not ignore", e.Record)
		}
		v, err = decodeOther(text)
	}
	return e, v, err
}

func decodeAs[T any](text []byte) (any, error) {
	var v T
	err := json.Unmarshal(text, &v)
	return v, err
}

// decodeOther keeps a record of an unknown kind, for another place in the file.
func decodeOther(text []byte) (other, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return other{}, err
	}
	delete(all, "more")
	text, err := json.Marshal(all)
	return other{text}, err
}

func (h *header) UnmarshalJSON(text []byte) (err error) {
	type plain header
	h.unknown, err = unmarshalKeeping(text, (*plain)(h), headerFields())
	return err
}

func (h header) MarshalJSON() ([]byte, error) {
	type plain header
	return marshalWith(plain(h), h.unknown)
}

func (o *owner) UnmarshalJSON(text []byte) (err error) {
	type plain owner
	o.unknown, err = unmarshalKeeping(text, (*plain)(o), ownerFields())
	return err
}

func (o owner) MarshalJSON() ([]byte, error) {
	type plain owner
	return marshalWith(plain(o), o.unknown)
}

func (l *leftRecord) UnmarshalJSON(text []byte) (err error) {
	l.unknown, err = unmarshalKeeping(text, &l.Left, leftFields())
	return err
}

func (l leftRecord) MarshalJSON() ([]byte, error) { return marshalWith(l.Left, l.unknown) }

func (o other) MarshalJSON() ([]byte, error) { return o.text, nil }
