// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir

import (
	"context"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/durable"
)

// kindLayout is the kind of the entry of a directory's layout as a whole. Its
// object is the ..data link.
const kindLayout = "config/layout"

// files records the directories that are made.
var files = journal.Files{Kind: "config"}

const kindDir = "config/dir" // of files

// wish is the configuration, which another agent of the same host may want too.
func (j job) wish(met bool) journal.Wish {
	return journal.Wish{Entry: journal.Entry{Kind: kindLayout, Object: filepath.Join(j.dir, dataLink), After: stateOf(j.want)}, Met: met}
}

// begin records that a configuration is about to be written.
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
		e.Before, err = l.before(ctx, d)
	}
	if err != nil {
		return err
	}
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

// complete completes the entry that was begun, now or by a killed run. A
// configuration that another process has written meanwhile is not ours.
func (j job) complete(ctx context.Context) error {
	if j.journal == nil {
		return nil
	}
	e, known, err := j.journal.Lookup(ctx, kindLayout, filepath.Join(j.dir, dataLink))
	if err != nil || !known || e.Done || !e.MatchesAfter(stateOf(j.want)) {
		return err
	}
	e.After = stateOf(j.want)
	return j.journal.Complete(ctx, e)
}
