// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// uninstall undoes the recorded changes. If nothing is recorded, or nothing any more, the
// node must have no object with a mark of this agent: otherwise the state directory is
// another one, or lost.
func (a *app) uninstall(cmd *cobra.Command, steps []string, dryRun bool) error {
	var before bool
	err := a.takeBack(cmd, steps, dryRun, func(context.Context) (more []bootstrap.Step, err error) {
		before, err = a.journal.Empty()
		return nil, err
	})
	if err != nil {
		return err
	}
	if now, err := a.journal.Empty(); err != nil || !now {
		return err
	}
	return a.unrecorded(cmd.Context(), before)
}

// unrecorded returns an error if the node has objects made by this program's agent. Those
// that another journal has recorded count if this one was empty from the start.
func (a *app) unrecorded(ctx context.Context, fromTheFirst bool) error {
	orphans, err := a.journal.Orphans(ctx)
	if err != nil {
		return fmt.Errorf("look for unrecorded objects: %w", err)
	}
	var errs []error
	for _, m := range orphans {
		dir, err := a.recordedIn(ctx, m, orphans)
		if dir != "" && fromTheFirst {
			errs = append(errs, fmt.Errorf("nothing is recorded in %s, and %s was made here: undo it by nodeinit uninstall --state-dir=%s", a.stateDir, m.Object, dir))
		} else if dir == "" {
			errs = append(errs, errors.Join(err, fmt.Errorf("nothing is recorded in %s, and %s was made here: undo it with the --state-dir that it was made with, or if that is lost, remove it: %s", a.stateDir, m.Object, m.Remove)))
		}
	}
	if len(errs) == 0 && fromTheFirst {
		out := a.stdout
		if a.output == formatJSON {
			out = a.stderr
		}
		fmt.Fprintf(out, "nothing is recorded in %s\n", bootstrap.OneLine(a.stateDir))
	}
	return errors.Join(errs...)
}

// recordedIn looks for the directory of the journal that has the object: the one that it
// names or another orphan does, or the usual one.
func (a *app) recordedIn(ctx context.Context, m journal.Marked, orphans []journal.Marked) (dir string, err error) {
	dirs := []string{m.Dir, defaultStateDir}
	for _, o := range orphans {
		dirs = append(dirs, o.Dir)
	}
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { return dir == "" || dir == a.stateDir })
	for _, other := range dirs {
		j, err := (&journal.Node{Dir: other, Agent: a.agent, NoOwner: true}).Open(ctx, a.host().Enter)
		if err != nil {
			continue // it is no journal that uninstall could undo
		}
		known, err := j.Knows(m)
		if err = errors.Join(err, j.Close()); err != nil || known {
			return other, err
		}
	}
	return "", nil
}
