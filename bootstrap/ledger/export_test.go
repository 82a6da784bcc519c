// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"
)

// Memory is a store in memory, for tests. Its process may be killed at each step.
type Memory struct {
	Content  []byte
	Contents map[string][]byte
	Reports  map[string][]byte
	Step     func() // called before and after each change
	Sync     error  // of the next change of the file, which is made all the same
}

// OpenIn opens the ledger in m.
func (l *Ledger) OpenIn(m *Memory, boot string) *Book { return l.open(m, boot) }

// Line is a line of the file with this text, for tests that build one.
func Line(raw []byte) []byte {
	var b bytes.Buffer
	writeLine(&b, raw)
	return b.Bytes()
}

func (m *Memory) step() {
	if m.Step != nil {
		m.Step()
	}
}

func (m *Memory) read() ([]byte, error) { return bytes.Clone(m.Content), nil }
func (m *Memory) close() error          { return nil }

func (m *Memory) replace(content []byte) error {
	m.step()
	m.Content = bytes.Clone(content)
	m.step()
	err := m.Sync
	m.Sync = nil
	return err
}

func (m *Memory) keep(ctx context.Context, s State, r io.Reader) error {
	m.step()
	var b bytes.Buffer
	if err := copyContent(ctx, &b, r, &s); err != nil {
		return err
	}
	if m.Contents == nil {
		m.Contents = map[string][]byte{}
	}
	m.Contents[s.SHA256] = b.Bytes()
	m.step()
	return nil
}

func (m *Memory) open(sha256 string) (io.ReadCloser, error) {
	content, ok := m.Contents[sha256]
	if !ok {
		return nil, fmt.Errorf("the kept content %s is missing", sha256)
	}
	return inMemory(content), nil
}

func (m *Memory) version() string { return string(m.Content) }

func (m *Memory) writable() error { return nil }

func (m *Memory) report(agent string) ([]byte, time.Time, error) {
	return m.Reports[agent], time.Time{}, nil
}

func (m *Memory) setReport(agent string, content []byte) error {
	m.step()
	if m.Reports == nil {
		m.Reports = map[string][]byte{}
	}
	m.Reports[agent] = content
	m.step()
	return nil
}

func (m *Memory) leftovers(needed map[string]bool, agents map[string]*agent) (bool, error) {
	for sha256 := range m.Contents {
		if !needed[sha256] {
			return true, nil
		}
	}
	return false, nil
}

func (m *Memory) collect(needed map[string]bool, agents map[string]*agent) error {
	for name := range m.Reports {
		if agents[name] == nil {
			delete(m.Reports, name)
		}
	}
	for sha256 := range m.Contents {
		if !needed[sha256] {
			m.step()
			delete(m.Contents, sha256)
		}
	}
	return nil
}

func (m *Memory) remove() error {
	if m.Content != nil {
		m.step()
		m.Content = nil
		m.step()
	}
	return m.collect(nil, nil)
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
