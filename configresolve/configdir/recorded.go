// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/durable"
)

// kindLayout is the kind of the entry of a directory's layout as a whole. Its
// object is the ..data link.
const kindLayout = "config/layout"

// files records the directories that are made, and whatever is in the place of a
// key.
var files = journal.Files{Kind: "config"}

var kindKey = files.Kinds()[0]

// begin records what the write replaces. The directory must be locked.
func (j job) begin(ctx context.Context, d *durable.Dir, l *layout) error {
	if j.journal == nil {
		return nil
	}
	e := journal.Entry{Kind: kindLayout, Object: filepath.Join(j.dir, dataLink), After: stateOf(j.want), Needs: []string{j.dir}}
	volatile, err := d.InMemory()
	if err != nil {
		return err
	}
	if volatile {
		e.Boot = j.journal.Boot()
	}
	old, known, err := j.journal.Lookup(ctx, e.Kind, e.Object)
	switch {
	case err != nil:
	case known && old.Boot == e.Boot:
		err = j.settle(ctx, d, l, old)
	default:
		e.Before, err = j.before(ctx, d, l)
	}
	if err != nil {
		return err
	}
	keys, err := j.beginKeys(ctx, d, l)
	if err != nil {
		return err
	}
	e.Needs = append(e.Needs, keys...)
	return j.journal.Begin(ctx, e)
}

// settle completes an entry that a killed run began, if that run made the change,
// so that beginning it again does not lose how the step left the object.
func (j job) settle(ctx context.Context, d *durable.Dir, l *layout, e journal.Entry) error {
	if e.Done {
		return nil
	}
	left, err := l.leftBy(ctx, d, e)
	if err != nil || !left {
		return err
	}
	if e.After, err = l.state(ctx, d); err != nil {
		return err
	}
	return j.journal.Complete(ctx, e)
}

func (j job) before(ctx context.Context, d *durable.Dir, l *layout) (journal.State, error) {
	was, err := capture(ctx, d, l)
	if err != nil {
		return journal.State{}, err
	}
	return was.keep(ctx, j.journal)
}

// beginKeys records what is in the place of a key's link, if it is not such a link.
// It returns the places that are recorded.
func (j job) beginKeys(ctx context.Context, d *durable.Dir, l *layout) (places []string, err error) {
	if err := j.completeKeys(ctx); err != nil {
		return nil, err
	}
	mine, theirs, err := j.recordedKeys(ctx)
	if err != nil {
		return nil, err
	}
	become := map[string]journal.State{} // by key
	for _, key := range l.remove {
		if _, known := mine[key]; known || theirs[key] {
			become[key] = journal.State{}
		}
	}
	for _, key := range l.add {
		info, there := l.all[key]
		if _, known := mine[key]; known {
			become[key] = linkTo(key)
		} else if there {
			if err := keepable(d.Path(key), info, maxKept); err != nil {
				return nil, err
			}
			become[key] = linkTo(key)
		}
	}
	for key := range theirs { // so that what they found is left to us
		_, known := mine[key]
		if _, wanted := j.want[key]; wanted && !known && l.linkOf[key] == linkTo(key).Target {
			become[key] = linkTo(key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(become)) {
		if err := files.Begin(ctx, j.journal, filepath.Join(j.dir, key), become[key]); err != nil {
			return nil, err
		}
		mine[key] = journal.Entry{}
	}
	for _, key := range slices.Sorted(maps.Keys(mine)) {
		places = append(places, filepath.Join(j.dir, key))
	}
	return places, nil
}

// recordedKeys finds the keys whose place this step, or another, has recorded.
func (j job) recordedKeys(ctx context.Context) (mine map[string]journal.Entry, theirs map[string]bool, err error) {
	mine, theirs = map[string]journal.Entry{}, map[string]bool{}
	all, err := j.journal.Entries()
	if err != nil {
		return nil, nil, err
	}
	for _, e := range all {
		if e.Kind != kindKey || filepath.Dir(e.Object) != j.dir {
			continue
		}
		key := filepath.Base(e.Object)
		own, known, err := j.journal.Lookup(ctx, e.Kind, e.Object)
		if err != nil {
			return nil, nil, err
		}
		if known {
			mine[key] = own
		}
		theirs[key] = theirs[key] || own.Step != e.Step
	}
	return mine, theirs, nil
}

// complete completes the entries that were begun, now or by a killed run. What
// somebody else has written in the meantime is not ours.
func (j job) complete(ctx context.Context) error {
	if j.journal == nil {
		return nil
	}
	if err := j.completeKeys(ctx); err != nil {
		return err
	}
	e, known, err := j.journal.Lookup(ctx, kindLayout, filepath.Join(j.dir, dataLink))
	if err != nil || !known || e.Done || !e.Left(stateOf(j.want)) {
		return err
	}
	e.After = stateOf(j.want)
	return j.journal.Complete(ctx, e)
}

func (j job) completeKeys(ctx context.Context) error {
	mine, _, err := j.recordedKeys(ctx)
	if err != nil {
		return err
	}
	for _, e := range mine {
		if !e.Done {
			if err := files.Complete(ctx, j.journal, e.Object); err != nil {
				return err
			}
		}
	}
	return nil
}

func linkTo(key string) journal.State {
	return journal.State{Type: "symlink", Target: dataLink + "/" + key, UID: os.Geteuid(), GID: os.Getegid()}
}
