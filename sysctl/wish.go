// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"slices"

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
		w := journal.Wish{Entry: valueEntry(t.Key, journal.State{}, state(t.Value), j.Boot())}
		now, err := k.read(t.path)
		w.Met = err == nil && !differs[t.Key] && sameValue(now, t.Value)
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
	return append(wishes, slices.DeleteFunc(along, func(w journal.Wish) bool { return own[Key(w.Object)] })...)
}

// along returns the values that the kernel changed along with t when another agent
// set it: they stay with it.
func (k Kernel) along(j *journal.Journal, t target) (wishes []journal.Wish) {
	paths, _ := sides(k.files(), t.path)  // Apply reports the error
	wanted, _ := wantedByOthers(j, paths) // the journal reports this one
	for _, p := range paths {
		now, err := k.read(p)
		theirs, others := wanted[identityOf(keyOf(p))]
		if err == nil && others && sameValue(now, dragged(p, t.path, t.Value)) && sameValue(now, theirs.After.Value) {
			wishes = append(wishes, journal.Wish{Entry: valueEntry(keyOf(p), journal.State{}, state(now), j.Boot()), Met: true})
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
		after := state(dragged(p, at, c.New))
		wishes = append(wishes, journal.Wish{Entry: valueEntry(keyOf(p), journal.State{}, after, boot)})
	}
	return wishes
}

func valueEntry(key Key, before, after journal.State, boot string) journal.Entry {
	return journal.Entry{Kind: kindValue, Object: string(key), Identity: identityOf(key), Before: before, After: after, Boot: boot}
}

// identityOf identifies a value, whichever agent sets it.
func identityOf(key Key) string { return "sysctl " + string(key) }

func (k Kernel) checkWishes(ctx context.Context, as []assignment, changes []Change) ([]string, error) {
	j := journal.From(ctx)
	return j.CheckWishes(ctx, k.wishes(j, as, changes)...)
}

func (k Kernel) wish(ctx context.Context, as []assignment) error {
	j := journal.From(ctx)
	return j.Wish(ctx, k.wishes(j, as, nil)...)
}
