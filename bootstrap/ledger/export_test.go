// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// Memory is a store in memory, for tests. Its process may be killed at each step.
type Memory struct {
	Content  []byte            // of the ledger's file
	Contents map[string][]byte // of the files beside it
	Step     func()            // called before and after each change
	Sync     error             // of the next change of the file, which is made all the same
}

// OpenIn opens the ledger in m.
func (l *Ledger) OpenIn(m *Memory, boot string) *Book { return l.open(m, boot) }

// IsCovered is isCovered.
var IsCovered = isCovered

// Claims are the whole claims of a record.
func Claims(r Record) (all []claim) {
	for _, c := range r.Claims {
		all = append(all, c.claim)
	}
	return all
}

// Line is a line of the file with this text, for tests that build one.
func Line(raw []byte) []byte {
	var b bytes.Buffer
	writeLine(&b, raw)
	return b.Bytes()
}

// change makes a change, at which the process may be killed.
func (m *Memory) change(f func()) {
	if m.Step == nil {
		m.Step = func() {}
	}
	if m.Contents == nil {
		m.Contents = map[string][]byte{}
	}
	m.Step()
	f()
	m.Step()
}

func (m *Memory) read(name string, _ int64) ([]byte, time.Time, error) {
	if name == fileName {
		return bytes.Clone(m.Content), time.Time{}, nil
	}
	return m.Contents[name], time.Time{}, nil
}

func (m *Memory) write(name string, content []byte) (err error) {
	m.change(func() {
		if name == fileName {
			m.Content, err, m.Sync = bytes.Clone(content), m.Sync, nil
		} else {
			m.Contents[name] = content
		}
	})
	return err
}

func (m *Memory) keep(ctx context.Context, s State, r io.Reader) (err error) {
	m.change(func() {
		var b bytes.Buffer
		if err = copyContent(ctx, &b, r, &s); err == nil {
			m.Contents[contentPrefix+s.SHA256] = b.Bytes()
		}
	})
	return err
}

func (m *Memory) open(sha256 string) (io.ReadCloser, error) {
	content, ok := m.Contents[contentPrefix+sha256]
	if !ok {
		return nil, fmt.Errorf("the kept content %s is missing", sha256)
	}
	return inMemory(content), nil
}

func (m *Memory) version() string { return string(m.Content) }
func (m *Memory) writable() error { return nil }
func (m *Memory) close() error    { return nil }

func (m *Memory) leftovers(obsolete func(string) bool) (found bool, err error) {
	for name := range m.Contents {
		found = found || obsolete(name)
	}
	return found, nil
}

func (m *Memory) collect(obsolete func(string) bool) error {
	for name := range m.Contents {
		if obsolete(name) {
			m.change(func() { delete(m.Contents, name) })
		}
	}
	return nil
}

func (m *Memory) remove() error {
	if m.Content != nil {
		m.change(func() { m.Content = nil })
	}
	return m.collect(newSheet().obsolete())
}

// PodOf reports whether a cgroup path leads through a pod's cgroup.
var PodOf = podOf

// IsPod reports whether an owner is a pod's UID.
var IsPod = isPod

// Accepting makes the book leave for good what others have changed.
func (b *Book) Accepting() *Book {
	b.ledger.AcceptKept = true
	return b
}

// Verify asks as a process that claims nothing does before it changes something.
func (b *Book) Verify(ctx context.Context) error {
	beside := *b
	beside.ledger.RepairOnly = true
	return beside.MayApply(ctx)
}

// FileFrom wants a file whose content is read only once.
func FileFrom(path string, mode fs.FileMode, open func() (io.ReadCloser, error)) Want {
	w := FileWant(path, mode, nil)
	w.To.SHA256, w.To.Open = "", open
	return w
}
