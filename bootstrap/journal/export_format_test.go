// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import "bytes"

// Decode reads the journal file of the agent "agent".
func Decode(file []byte) (owner string, generation int, entries []Entry, left []Left, err error) {
	l := newLog("agent")
	if err := l.read(newLineReader(bytes.NewReader(file), "", 0)); err != nil {
		return "", 0, nil, nil, err
	}
	p := l.page()
	return p.current().Name, p.current().Generation, p.Entries, p.Left, nil
}

// Bound lowers the limits until restore is called.
func Bound(entries, record int, live int64, blobs int, content int64) (restore func()) {
	was := bound
	bound = bounds{entries, record, live, blobs, content}
	return func() { bound = was }
}

// The limits of a journal.
const (
	MaxEntries = maxEntries
	MaxRecord  = maxRecord
	MaxLive    = maxLive
	MaxJournal = maxJournal
)
