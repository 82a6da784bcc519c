// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// companions are recorded values that the kernel changes along with a value that is
// put back. They keep their current value, whichever step they belong to and even
// if they were put back before, except those that are about to be put back. So do
// values that another agent of the node wants.
type companions []companion

type companion struct {
	journal.Entry
	settles bool // the entry is only begun, and is completed first
	path    string
	found   string // the current value
	next    string // the value to come
	holds   bool   // the value must not change
	others  bool   // another agent wants it; its record is not ours to change
}

// companions finds the companions of e, by the newest entry of each.
func (k Kernel) companions(j *journal.Journal, e journal.Entry) (companions, error) {
	at, err := keyIn(e).path()
	if err != nil || len(sidePatterns(at)) == 0 {
		return nil, err
	}
	newest, err := newestValues(j)
	if err != nil {
		return nil, err
	}
	paths, err := sides(k.files(), at)
	if err != nil {
		return nil, err
	}
	wanted, err := wantedByOthers(j, paths)
	if err != nil {
		return nil, err
	}
	var all companions
	for _, p := range paths {
		o, recorded := newest[keyOf(p)]
		theirs, others := wanted[identityOf(keyOf(p))]
		if !recorded {
			o = theirs
		}
		if !recorded && !others {
			continue
		}
		found, err := k.read(p)
		if errors.Is(err, fs.ErrNotExist) { // the link is gone
			continue
		}
		if err != nil {
			return nil, err
		}
		c := companion{path: p, found: found, next: dragged(p, at, e.Before.Value), others: others}
		c.Entry, c.settles = settled(o, found)
		comesNext := o.Step == e.Step && left(o, found) && !sameValue(p, found, o.Before.Value)
		c.holds = (others || !comesNext) && !oneValue(p, at)
		all = append(all, c)
	}
	return all, nil
}

// lookAlong returns how to undo e, whose own value is already back: if a run was
// killed before it restored the values that another agent wants and the kernel had
// changed along, they remain.
func (k Kernel) lookAlong(j *journal.Journal, e journal.Entry, at string) (u journal.Undo, err error) {
	paths, err := sides(k.files(), at)
	if err != nil {
		return u, err
	}
	wanted, err := wantedByOthers(j, paths)
	if err != nil {
		return u, err
	}
	var changes []Change
	for _, p := range paths {
		theirs, others := wanted[identityOf(keyOf(p))]
		now, err := k.read(p)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // the link is gone
			return u, err
		}
		was := dragged(p, at, e.Before.Value)
		if err == nil && others && theirs.Done && sameValue(p, now, was) && !sameValue(p, now, theirs.After.Value) && !oneValue(p, at) {
			changes = append(changes, Change{Key: keyOf(p), Old: now, New: theirs.After.Value})
		}
	}
	if len(changes) == 0 {
		return u, nil
	}
	u.Change = strings.Join(lines(changes), ", ")
	u.Run = func(context.Context) (err error) {
		for _, c := range changes {
			err = errors.Join(err, k.put(c.Key, c.New))
		}
		return err
	}
	return u, nil
}

func wantedByOthers(j *journal.Journal, paths []string) (map[string]journal.Entry, error) {
	if j.Alone() {
		return nil, nil
	}
	var identities []string
	for _, p := range paths {
		identities = append(identities, identityOf(keyOf(p)))
	}
	return j.WantedByOthers(identities...)
}

func newestValues(j *journal.Journal) (map[Key]journal.Entry, error) {
	entries, err := j.Entries()
	newest := map[Key]journal.Entry{}
	for _, e := range entries {
		if e.Kind == kindValue && (e.Boot == "" || e.Boot == j.Boot()) {
			newest[keyIn(e)] = e
		}
	}
	return newest, err
}

// begin records the values that the companions will have, so that the next run
// recognises them if this one is killed.
func (cs companions) begin(ctx context.Context, j *journal.Journal) error {
	for step, all := range cs.bySteps() {
		var finished, entries []journal.Entry
		for _, c := range all {
			if c.others {
				continue
			}
			if c.settles {
				finished = append(finished, c.Entry)
			}
			c.After = state(c.next)
			entries = append(entries, c.Entry)
		}
		ctx := journal.With(ctx, j.Step(step))
		if err := j.Complete(ctx, finished...); err != nil {
			return err
		}
		if err := j.Begin(ctx, entries...); err != nil {
			return err
		}
	}
	return nil
}

// hold sets the companions back to the values that they must keep.
func (cs companions) hold(ctx context.Context, k Kernel, j *journal.Journal) error {
	var errs []error
	for step, all := range cs.bySteps() {
		var held, wasBack []journal.Entry
		for _, c := range all {
			if !c.holds {
				continue
			}
			err := k.put(keyOf(c.path), c.found)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, fmt.Errorf("keep %s = %s, which the kernel changes along: %w", c.Object, shown(keyIn(c.Entry), c.found), err))
			} else if c.Done && !c.others && sameValue(c.path, c.found, c.Before.Value) {
				wasBack = append(wasBack, c.Entry) // completing it would make it a wanted value
			} else if c.Done && !c.others {
				held = append(held, c.Entry)
			}
		}
		ctx := journal.With(ctx, j.Step(step))
		errs = append(errs, j.Complete(ctx, held...), j.Begin(ctx, wasBack...))
	}
	return errors.Join(errs...)
}

func (cs companions) bySteps() map[string]companions {
	steps := map[string]companions{}
	for _, c := range cs {
		steps[c.Step] = append(steps[c.Step], c)
	}
	return steps
}
