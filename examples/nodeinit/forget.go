// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

func (a *app) forget(cmd *cobra.Command, names []string) error {
	if a.damaged == (len(names) > 0) {
		return usage("name the objects as status shows them, or give --damaged")
	}
	return a.recording(cmd, func(ctx context.Context) error {
		if a.damaged {
			err := a.book.Salvage(ctx)
			if err == nil {
				fmt.Fprintln(a.stdout, "dropped the records that could not be read; the others stay")
			}
			return err
		}
		if err := a.mayUndo(cmd); err != nil {
			return err
		}
		return a.forgetObjects(ctx, names)
	})
}

// recording calls change, which changes records alone, under the node's lock.
func (a *app) recording(cmd *cobra.Command, change func(context.Context) error) error {
	if err := needsRoot(os.Geteuid(), cmd.Name()); err != nil {
		return err
	}
	if err := a.needBook(cmd.Context()); err != nil && (a.book == nil || !a.damaged) {
		return err
	}
	return a.locked(cmd.Context(), func() error { return change(cmd.Context()) })
}

func (a *app) forgetObjects(ctx context.Context, names []string) error {
	if err := a.book.MayUndo(ctx); err != nil {
		return err
	}
	recorded, err := a.book.Status(ctx)
	if err != nil {
		return err
	}
	var ids []string
	for _, name := range names {
		ids = append(ids, a.idsOf(recorded, name)...)
	}
	if err := a.book.Forget(ctx, ids...); err != nil {
		return err
	}
	for _, id := range ids {
		fmt.Fprintf(a.stdout, "forgot %s\n", bootstrap.OneLine(id))
	}
	return nil
}

// idsOf lists the objects that status shows by a name: this agent's, and those whose records
// cannot be read. If there is none, the name itself stands for the error.
func (a *app) idsOf(recorded ledger.Status, name string) (ids []string) {
	for _, r := range recorded.Records {
		if claimOf(r, a.agent) >= 0 && slices.Contains([]string{r.Object, r.ID, bootstrap.OneLine(r.Object)}, name) {
			ids = append(ids, r.ID)
		}
	}
	for _, id := range recorded.Damaged {
		if id == name || bootstrap.OneLine(id) == name {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return []string{name}
	}
	return ids
}

func (a *app) release(cmd *cobra.Command, _ []string) error {
	if !a.flag("agent").given {
		return usage("name the agent that has gone: --agent")
	}
	return a.recording(cmd, a.releaseAgent)
}

// released is the outcome of a release.
type released struct {
	Agent    string   `json:"agent"`
	Recorded int      `json:"recorded"`
	Left     []string `json:"left"` // objects
}

// releaseAgent gives up the agent's records, unless it is alive.
func (a *app) releaseAgent(ctx context.Context) error {
	agents, err := a.agents(ctx)
	recorded, statusErr := a.book.Status(ctx)
	if err := errors.Join(err, statusErr); err != nil {
		return err
	}
	v := released{Agent: a.agent, Left: []string{}}
	if agent := agentIn(agents, a.agent); agent != nil {
		if err := a.hasGone(ctx, *agent); err != nil && !a.force {
			return fmt.Errorf("release agent %q: %w", a.agent, err)
		}
		for _, r := range recorded.Records {
			if claimOf(r, a.agent) >= 0 {
				v.Recorded++
			}
		}
		left, err := a.book.Release(ctx, a.agent)
		if err != nil {
			return err
		}
		v.Left = append(v.Left, left...)
	}
	if a.shown = true; a.output == formatJSON {
		return a.writeJSON(v)
	}
	fmt.Fprintf(a.stdout, "%s: agent %s is released; %d recorded, %d left in place\n", bootstrap.OneLine(a.stateDir), a.agent, v.Recorded, len(v.Left))
	for _, object := range v.Left {
		fmt.Fprintf(a.stdout, "left %s\n", bootstrap.OneLine(object))
	}
	return nil
}
