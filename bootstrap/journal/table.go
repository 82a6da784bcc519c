// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"iter"
	"slices"
)

// table has entries in the order in which they were begun. Finding, changing, adding and
// dropping one takes the same time whatever their number.
type table struct {
	slots   []*slot // oldest first; nil: dropped
	at      map[id]int
	about   map[string][]id    // by the identity of the object
	content map[string]content // by the name of the blob
	kept    int64              // bytes of that
	gone    int                // entries that are released
	found   int                // entries of objects found as wanted
	begun   int                // entries that are not done
}

// slot is an entry, and about how many bytes its line in the file has.
type slot struct {
	Entry
	size int
}

// content is content that entries name, kept in a file beside the journal.
type content struct {
	entries int
	size    int64
}

func newTable() table {
	return table{at: map[id]int{}, about: map[string][]id{}, content: map[string]content{}}
}

func (t *table) len() int { return len(t.at) }

// wanted is the number of entries of objects that the agent wants.
func (t *table) wanted() int { return len(t.at) - t.gone }

func (t *table) has(i id) bool {
	_, ok := t.at[i]
	return ok
}

func (t *table) get(i id) (Entry, bool) {
	at, ok := t.at[i]
	if !ok {
		return Entry{}, false
	}
	return t.slots[at].Entry, true
}

// put records e: in its present place, unless it has none or is begun anew. It returns
// the growth in bytes.
func (t *table) put(e Entry, anew bool, size int) (more int) {
	at, known := t.at[e.id()]
	if known && !anew {
		was := t.slots[at]
		t.count(e, 1)
		t.count(was.Entry, -1)
		t.slots[at] = &slot{e, size}
		t.reindex(was.Entry, e)
		return size - was.size
	}
	t.count(e, 1)
	less := t.drop(e.id())
	t.at[e.id()] = len(t.slots)
	t.slots = append(t.slots, &slot{e, size})
	t.about[e.Identity] = append(t.about[e.Identity], e.id())
	return size - less
}

// drop forgets an entry, and returns its size in bytes.
func (t *table) drop(i id) (less int) {
	at, known := t.at[i]
	if !known {
		return 0
	}
	was := t.slots[at]
	t.count(was.Entry, -1)
	t.slots[at] = nil
	delete(t.at, i)
	t.unindex(was.Entry)
	if len(t.slots) > 2*len(t.at)+16 {
		t.close()
	}
	return was.size
}

// reindex makes the table find the entry recorded as was by the identity of e.
func (t *table) reindex(was, e Entry) {
	if was.Identity != e.Identity {
		t.unindex(was)
		t.about[e.Identity] = append(t.about[e.Identity], e.id())
	}
}

func (t *table) unindex(e Entry) {
	about := slices.DeleteFunc(t.about[e.Identity], func(i id) bool { return i == e.id() })
	if t.about[e.Identity] = about; len(about) == 0 {
		delete(t.about, e.Identity)
	}
}

// of yields the entries about one object, in the order in which they were begun.
func (t *table) of(identity string) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for _, i := range t.about[identity] {
			if e, ok := t.get(i); ok && !yield(e) {
				return
			}
		}
	}
}

// close closes the gaps of dropped entries.
func (t *table) close() {
	var slots []*slot
	for _, s := range t.slots {
		if s != nil {
			t.at[s.id()] = len(slots)
			slots = append(slots, s)
		}
	}
	t.slots = slots
}

// count counts e, and the references to its content.
func (t *table) count(e Entry, n int) {
	if e.Released {
		t.gone += n
	}
	if e.Found {
		t.found += n
	}
	if !e.Done {
		t.begun += n
	}
	t.countState(e.Before, n)
	if e.Over != nil {
		t.countState(*e.Over, n)
	}
}

func (t *table) countState(s State, n int) {
	if s.Blob == "" {
		return
	}
	c := t.content[s.Blob]
	t.kept -= c.size
	if c.entries += n; c.entries == 0 {
		delete(t.content, s.Blob)
		return
	}
	c.size = s.Size
	t.kept += c.size
	t.content[s.Blob] = c
}

// all yields the entries, oldest first.
func (t *table) all(yield func(Entry) bool) {
	for _, s := range t.slots {
		if s != nil && !yield(s.Entry) {
			return
		}
	}
}
