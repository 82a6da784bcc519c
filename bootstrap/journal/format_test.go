// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/journaltest"
)

// seen describes what a reader sees in a journal, without times.
func seen(t *testing.T, j *journal.Journal) string {
	t.Helper()
	owner, generation, err := j.Owner()
	require.NoError(t, err)
	left, err := j.LeftForGood()
	require.NoError(t, err)
	var b strings.Builder
	fmt.Fprintln(&b, owner, generation)
	all := entries(t, j)
	for _, e := range all {
		fmt.Fprintln(&b, e, e.Step, e.Before.Value, e.After.Value, e.Done, e.Kept)
	}
	for _, l := range left {
		if !slices.ContainsFunc(all, func(e journal.Entry) bool { return e.Kind == l.Kind && e.Object == l.Object }) {
			fmt.Fprintln(&b, "left", l.Kind, l.Object, l.Value)
		}
	}
	return b.String()
}

// sample is a journal with records of each kind: the file, and for each acknowledged change the
// file's length and the reader's view after it.
type sample struct {
	dir     string
	file    []byte
	lengths []int64
	states  []string
}

func newSample(t *testing.T) (s sample) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	s.dir = t.TempDir()
	j := open(t, dir, journal.Node{Owner: "pod-a"})
	ctx := step(t, j, "one")
	change := func(f func() error) {
		require.NoError(t, f())
		info, err := os.Stat(journaltest.Path(t, dir))
		require.NoError(t, err)
		s.lengths, s.states = append(s.lengths, info.Size()), append(s.states, seen(t, j))
	}
	change(func() error {
		_, leave, err := j.Enter(t.Context(), "apply")
		if err == nil {
			err = leave()
		}
		return err
	})
	e := func(object, before, after string) journal.Entry {
		return journal.Entry{Kind: "acme/value", Object: object, Before: value(before), After: value(after)}
	}
	three := []journal.Entry{e("a", "0", "1"), e("b", "0", "1"), e("c", "0", "1")}
	change(func() error { return j.Begin(ctx, three...) })
	change(func() error { return j.Complete(ctx, three...) })
	change(func() error { return j.Begin(ctx, e("a", "x", "2")) })
	change(func() error { return j.Complete(ctx, e("a", "x", "2")) })
	change(func() error { return j.Forget(ctx, three[1]) })
	change(func() error { _, err := j.ForgetObject(t.Context(), "c"); return err })
	change(func() error { return j.Begin(ctx, e("d", "0", "1"), journal.Entry{Kind: "acme/value", Object: "c"}) })
	var err error
	s.file, err = os.ReadFile(journaltest.Path(t, dir))
	require.NoError(t, err)
	require.EqualValues(t, len(s.file), s.lengths[len(s.lengths)-1])
	require.True(t, slices.IsSorted(s.lengths), "each was appended: %v", s.lengths)
	return s
}

// read opens a journal with this content, and describes what a reader sees.
func (s sample) read(t *testing.T, file []byte) (string, error) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "agent.journal"), file, 0o600))
	j, err := (&journal.Node{Dir: s.dir, Agent: "agent", Owner: "pod-a"}).Open(t.Context(), nil)
	if err != nil {
		return "", err
	}
	defer j.Close()
	return seen(t, j), nil
}

// at is the reader's view if the file ends after n bytes.
func (s sample) at(n int) string {
	want := " 0\n" // the header alone
	for i, length := range s.lengths {
		if length <= int64(n) {
			want = s.states[i]
		}
	}
	return want
}

// The journal of a killed writer ends anywhere after the header, which is written together with
// the first change. Acknowledged changes count, each whole or not at all.
func TestPLAN6_AJournalThatEndsAnywhere(t *testing.T) {
	t.Parallel()
	s := newSample(t)
	header := bytes.IndexByte(s.file, '\n') + 1
	for n := range s.file {
		file := slices.Clone(s.file[:n])
		if s.file[n] != '\n' { // only a newline would be exchanged
			file = append(file, []string{"", "\x00", strings.Repeat("\x00", 700)}[n%3]...) // the latter two occur after a power cut
		}
		got, err := s.read(t, file)
		if n < header {
			require.ErrorIs(t, err, journal.ErrUnreadable, n)
			continue
		}
		require.NoError(t, err, n)
		require.Equal(t, s.at(n), got, n)
	}
}

// A byte that was changed, is missing or was inserted is an error, and so is a line that is
// missing, doubled or exchanged.
func TestPLAN6_AJournalGarbledAnywhereIsRefused(t *testing.T) {
	t.Parallel()
	s := newSample(t)
	refused := func(file []byte, says, what string, at int) {
		_, err := s.read(t, file)
		require.ErrorIs(t, err, journal.ErrUnreadable, "%s %d", what, at)
		require.ErrorContains(t, err, "agent.journal", "%s %d", what, at)
		require.ErrorContains(t, err, says, "%s %d", what, at)
		require.ErrorContains(t, err, "which gives up the undo", "%s %d", what, at)
	}
	for n, was := range s.file {
		garbled := []byte{0, '\n', ' ', '0', '9', '"', was ^ 1, was ^ 0x20, was ^ 0x80}[n%9]
		if garbled == was {
			garbled = was ^ 2
		}
		record := fmt.Sprintf("record %d: ", 1+bytes.Count(s.file[:n], []byte("\n")))
		refused(slices.Concat(s.file[:n], []byte{garbled}, s.file[n+1:]), record, "changed byte", n)
		switch {
		case n == len(s.file)-1: // a partial line
		case n%8 == 0:
			refused(slices.Delete(slices.Clone(s.file), n, n+1), "record ", "missing byte", n)
		case n%8 == 4:
			refused(slices.Insert(slices.Clone(s.file), n, 'x'), "record ", "inserted byte", n)
		}
	}
	lines := bytes.SplitAfter(s.file[:len(s.file)-1], []byte("\n"))
	lines[len(lines)-1] = append(lines[len(lines)-1], '\n')
	for i, line := range lines {
		refused(bytes.Join(slices.Insert(slices.Clone(lines), i, line), nil), "record ", "doubled line", i)
		if i == len(lines)-1 {
			break
		}
		others := slices.Delete(slices.Clone(lines), i, i+1)
		refused(bytes.Join(others, nil), "record ", "missing line", i)
		refused(bytes.Join(slices.Insert(others, i+1, line), nil), "record ", "exchanged line", i)
	}
}

// A later version's fields are kept on each kind of record, and so are kinds of records that
// need not be understood: when an entry is recorded again, and when the file is rewritten.
func TestPLAN6_WhatALaterVersionSaysIsKept(t *testing.T) {
	dir, v := t.TempDir(), newValues()
	path := filepath.Join(dir, "agent.journal")
	write := func(records ...string) { require.NoError(t, os.WriteFile(path, file(records...), 0o600)) }
	write(`{"record":"journal","schema":3,"agent":"agent","id":"x","later":{"a":[1]}}`,
		`{"record":"owner","name":"pod-a","generation":1,"since":"2030-01-01T00:00:00Z","node":"n1"}`,
		`{"record":"lease","critical":false,"object":"/l","more":true}`,
		`{"record":"left","kind":"acme/value","object":"left","why":"left so"}`,
		`{"record":"entry","kind":"acme/value","object":"old","step":"s","before":{"type":"value","value":"0","flags":7},"after":{"type":"value","value":"1","flags":8},"done":true,"why":"for a reason"}`)
	j := open(t, dir, journal.Node{Owner: "pod-a", Handlers: []journal.Handler{v}})
	require.Equal(t, "pod-a 1\nacme/value old s 0 1 true false\nleft acme/value left \n", seen(t, j), "known fields take effect")

	v.now["old"] = "1"
	v.set(t, step(t, j, "s"), j, "new", "1")
	v.set(t, step(t, j, "s"), j, "old", "1") // already set
	for i := range 60 {                      // so that the file is rewritten
		v.set(t, step(t, j, "s"), j, "new", fmt.Sprint(i))
	}
	records := journaltest.Records(t, dir)
	require.Less(t, len(records), 100)
	var texts []string
	for _, r := range records {
		texts = append(texts, string(r))
	}
	all := strings.Join(texts, "\n")
	for _, want := range []string{`"later":{"a":[1]}`, `"node":"n1"`, `{"critical":false,"object":"/l","record":"lease"}`, `"why":"left so"`, `"flags":7`, `"flags":8`, `"why":"for a reason"`} {
		require.Contains(t, all, want)
	}
	v.now["old"] = "changed"
	_, err := j.RevertAll(t.Context())
	require.ErrorIs(t, err, journal.ErrChanged)
	left := journaltest.Records(t, dir)
	last := string(left[len(left)-1])
	_, err = j.ForgetObject(t.Context(), "new")
	require.Error(t, err, "it is undone")
	require.Contains(t, string(bytes.Join(toBytes(left), nil)), `"flags":7`, last)
}

func toBytes(records []json.RawMessage) (all [][]byte) {
	for _, r := range records {
		all = append(all, r)
	}
	return all
}
