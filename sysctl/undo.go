// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/slipway-dev/slipway/internal/record"
)

// verdict is what Revert does with one recorded value.
type verdict int

const (
	settled verdict = iota // nothing to do, and nothing to come back to
	restore                // write back what was there, if it is not there
	lasting                // ours until the next boot
	changed                // somebody else's by now
)

// memo is a recorded value, judged.
type memo struct {
	record.Entry
	path    string
	now     string
	verdict verdict
	err     error
}

// judge looks at every recorded value before any is written: writing one may
// change others. Newest first.
func (k Kernel) judge(book *record.Book, boot string) []memo {
	var memos []memo
	for _, e := range slices.Backward(book.Entries()) {
		if e.Kind != kindOwn && e.Kind != kindSide {
			continue
		}
		m := memo{Entry: e}
		if m.path, m.err = Key(e.Object).path(); m.err == nil {
			m.now, m.err = k.read(m.path)
		}
		if errors.Is(m.err, fs.ErrNotExist) { // a link that went
			m.err = nil
		} else if m.err == nil {
			m.verdict = m.judge(boot)
		}
		memos = append(memos, m)
	}
	return memos
}

func (m memo) judge(boot string) verdict {
	before := m.Before.Value
	switch {
	case m.Boot != "" && m.Boot != boot:
		return settled
	case sameValue(m.now, before):
		return restore
	case !m.left() && (m.Done || m.Kind == kindOwn):
		return changed
	case forGood(m.path, m.now):
		return lasting
	}
	return restore
}

// left reports whether the value is as it was left, or, where that was not
// completed, as it was left the time before.
func (m memo) left() bool {
	return sameValue(m.now, m.After.Value) || m.Was != nil && sameValue(m.now, m.Was.Value)
}

// change is one line on what Revert will do. Empty: nothing.
func (m memo) change() string {
	switch {
	case m.err != nil || m.verdict == settled || m.verdict == restore && sameValue(m.now, m.Before.Value):
		return ""
	case m.verdict == restore:
		return Change{Key: Key(m.Object), Old: m.now, New: m.Before.Value}.String()
	case m.verdict == lasting:
		return fmt.Sprintf("leave %s = %s until the next boot (was %s): the kernel does not take it back",
			m.Object, oneLine(m.now), oneLine(m.Before.Value))
	}
	return fmt.Sprintf("leave %s = %s: %v (%s)", m.Object, oneLine(m.now), record.ErrChanged, oneLine(m.After.Value))
}

// drags reports whether putting m back changes other keys.
func (m memo) drags() bool {
	return m.Kind == kindOwn && m.verdict == restore && !sameValue(m.now, m.Before.Value) && len(sidePatterns(m.path)) > 0
}

// undoValues writes back what was recorded: first the values that drag others
// along, then the others, so that these have the last word.
func (k Kernel) undoValues(ctx context.Context, book *record.Book, boot string) error {
	memos := k.judge(book, boot)
	rest := slices.DeleteFunc(slices.Clone(memos), memo.drags)
	first := slices.DeleteFunc(memos, func(m memo) bool { return !m.drags() })
	if len(first) > 0 {
		if err := markSides(book, rest); err != nil {
			return err
		}
	}
	var gone []string
	var errs []error
	for _, m := range append(first, rest...) {
		if err := ctx.Err(); err != nil {
			errs = append(errs, err)
			break
		}
		err := k.undoValue(m)
		if err != nil {
			errs = append(errs, err)
		}
		if err == nil || errors.Is(err, record.ErrChanged) {
			gone = append(gone, m.Object)
		}
	}
	if len(gone) > 0 {
		errs = append(errs, book.Forget(gone...))
	}
	return errors.Join(errs...)
}

// markSides makes the sides that shall be put back begun ones: whatever they
// are after a kill, they are put back.
func markSides(book *record.Book, memos []memo) error {
	var entries []record.Entry
	for _, m := range memos {
		if m.Kind == kindSide && m.verdict == restore {
			entries = append(entries, m.Entry)
		}
	}
	if len(entries) == 0 {
		return nil
	}
	return book.Begin(entries...)
}

func (k Kernel) undoValue(m memo) error {
	switch {
	case m.err != nil:
		return fmt.Errorf("put back: %w", m.err)
	case m.verdict == changed:
		return fmt.Errorf("%s is %s, %w (%s), and stays", m.Object, oneLine(m.now), record.ErrChanged, oneLine(m.After.Value))
	case m.verdict != restore:
		return nil
	}
	err := k.put(Key(m.Object), m.Before.Value)
	if err == nil || errors.Is(err, fs.ErrNotExist) { // a link that went
		return nil
	}
	return fmt.Errorf("put back %s = %s: %w", m.Object, oneLine(m.Before.Value), err)
}
