// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

// table has entries in the order in which they were begun. Finding, changing, adding and
// dropping one takes the same time whatever their number.
type table struct {
	slots   []*slot // oldest first; nil: dropped
	at      map[id]int
	content map[string]content // by the name of the blob
	kept    int64              // bytes of that
}

// slot is an entry, and about how many bytes its line in the file has.
type slot struct {
	Entry
	size int
}

// content is what entries name that is kept in a file beside the journal.
type content struct {
	entries int
	size    int64
}

func newTable() table { return table{at: map[id]int{}, content: map[string]content{}} }

func (t *table) len() int { return len(t.at) }

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

// put records e: in the place that it has, unless it has none or is begun anew. It returns
// by how many bytes there is more.
func (t *table) put(e Entry, anew bool, size int) (more int) {
	at, known := t.at[e.id()]
	if known && !anew {
		was := t.slots[at]
		t.count(e, 1)
		t.count(was.Entry, -1)
		t.slots[at] = &slot{e, size}
		return size - was.size
	}
	t.count(e, 1)
	less := t.drop(e.id())
	t.at[e.id()] = len(t.slots)
	t.slots = append(t.slots, &slot{e, size})
	return size - less
}

// drop forgets an entry, and returns how many bytes it had.
func (t *table) drop(i id) (less int) {
	at, known := t.at[i]
	if !known {
		return 0
	}
	was := t.slots[at]
	t.count(was.Entry, -1)
	t.slots[at] = nil
	delete(t.at, i)
	if len(t.slots) > 2*len(t.at)+16 {
		t.close()
	}
	return was.size
}

// close closes the gaps of what was dropped.
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

// count counts who names the content of e.
func (t *table) count(e Entry, n int) {
	blob := e.Before.Blob
	if blob == "" {
		return
	}
	c := t.content[blob]
	t.kept -= c.size
	if c.entries += n; c.entries == 0 {
		delete(t.content, blob)
		return
	}
	c.size = e.Before.Size
	t.kept += c.size
	t.content[blob] = c
}

// all yields the entries, oldest first.
func (t *table) all(yield func(Entry) bool) {
	for _, s := range t.slots {
		if s != nil && !yield(s.Entry) {
			return
		}
	}
}
