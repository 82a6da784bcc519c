// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// wishes returns the values that as assign, including the pending changes, with
// those that the kernel changes along. Values that a pattern matches count only if
// there is another agent that may want them.
func (k Kernel) wishes(j *journal.Journal, as []assignment, changes []Change) (wishes []journal.Wish) {
	if j == nil {
		return nil
	}
	named := slices.DeleteFunc(slices.Clone(as), assignment.isPattern)
	alone := j.Alone()
	if alone {
		as = named
	}
	differs := map[Key]bool{}
	for _, c := range changes {
		differs[c.Key] = true
	}
	targets, _ := expand(k.files(), as) // its errors have been reported
	own := map[Key]bool{}
	for _, t := range targets {
		own[t.Key] = true
		w := journal.Wish{Entry: valueEntry(t.Key, journal.State{}, t.Value, j.Boot())}
		now, err := k.read(t.path)
		if w.Met = err == nil && !differs[t.Key] && sameValue(t.path, now, t.Value); w.Met {
			w.After = state(now)
		}
		w.Claim = slices.ContainsFunc(named, func(a assignment) bool { return a.Key == t.Key })
		wishes = append(wishes, w)
	}
	if alone {
		return wishes
	}
	var along []journal.Wish
	for _, c := range changes {
		along = append(along, k.dragged(c, j.Boot())...)
	}
	for _, t := range targets {
		if !differs[t.Key] {
			along = append(along, k.along(j, t)...)
		}
	}
	return append(wishes, slices.DeleteFunc(along, func(w journal.Wish) bool { return own[keyIn(w.Entry)] })...)
}

// along returns the values that the kernel changed along with t when another agent
// set it: they stay with it.
func (k Kernel) along(j *journal.Journal, t target) (wishes []journal.Wish) {
	paths, _ := sides(k.files(), t.path)  // Apply reports the error
	wanted, _ := wantedByOthers(j, paths) // the journal reports this one
	for _, p := range paths {
		now, err := k.read(p)
		theirs, others := wanted[identityOf(keyOf(p))]
		if err == nil && others && sameValue(p, now, dragged(p, t.path, t.Value)) && sameValue(p, now, theirs.After.Value) {
			wishes = append(wishes, journal.Wish{Entry: valueEntry(keyOf(p), journal.State{}, now, j.Boot()), Met: true})
		}
	}
	return wishes
}

// dragged returns the values that the kernel will change along with c.
func (k Kernel) dragged(c Change, boot string) (wishes []journal.Wish) {
	at, err := c.Key.path()
	if err != nil {
		return nil
	}
	paths, _ := sides(k.files(), at) // Apply reports the error
	for _, p := range paths {
		wishes = append(wishes, journal.Wish{Entry: valueEntry(keyOf(p), journal.State{}, dragged(p, at, c.New), boot)})
	}
	return wishes
}

// valueEntry returns an entry of key that becomes after, as the kernel will print it:
// the journal compares the wishes of several agents as texts.
func valueEntry(key Key, before journal.State, after, boot string) journal.Entry {
	at, _ := key.path() // it is valid here
	to := state(strings.Join(printed(at, after), " "))
	return journal.Entry{Kind: kindValue, Object: object(key), Identity: identityOf(key), Before: before, After: to, Boot: boot}
}

// object is the entry's name of key. The journal holds only UTF-8, and the name of a
// link may be any bytes.
func object(key Key) string {
	if utf8.ValidString(string(key)) {
		return string(key)
	}
	return strconv.QuoteToASCII(string(key))
}

func keyIn(e journal.Entry) Key {
	if key, err := strconv.Unquote(e.Object); err == nil {
		return Key(key)
	}
	return Key(e.Object)
}

// identityOf identifies a value, whichever agent sets it.
func identityOf(key Key) string { return "sysctl " + object(key) }

func (k Kernel) checkWishes(ctx context.Context, as []assignment, changes []Change) ([]string, error) {
	j := journal.From(ctx)
	return j.CheckWishes(ctx, k.wishes(j, as, changes)...)
}

func (k Kernel) wish(ctx context.Context, as []assignment) error {
	j := journal.From(ctx)
	return j.Wish(ctx, k.wishes(j, as, nil)...)
}
