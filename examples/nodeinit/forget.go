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

func (a *app) forgetCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "forget OBJECT...",
		Args: func(_ *cobra.Command, args []string) error {
			if a.damaged == (len(args) > 0) {
				return errors.New("name the objects as status shows them, or give --damaged")
			}
			return nil
		},
		Short: "Drop the records of objects, which stay as they are",
		Long: "Drop what is recorded of objects for an agent, without undoing it: they stay as they are. The objects are named as status shows them. " +
			"A record that cannot be read is dropped whichever agent it is of.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.recording(cmd, func(ctx context.Context) error {
				if a.damaged {
					err := a.book.Salvage(ctx)
					if err == nil {
						fmt.Fprintln(a.stdout, "forgot what could not be read; the other records stay")
					}
					return err
				}
				if err := a.mayUndo(cmd); err != nil {
					return err
				}
				return a.forget(ctx, args)
			})
		},
	}
	a.recordFlags(c.Flags())
	a.lockFlags(c.Flags())
	a.undoFlags(c)
	c.Flags().BoolVar(&a.damaged, "damaged", false, "drop the records that cannot be read, of all agents, and keep the others: also where it is the first line of the file that is damaged, and with it the owners")
	return c
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

func (a *app) forget(ctx context.Context, names []string) error {
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

func (a *app) releaseCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "release --agent NAME", Args: arguments(0),
		Short: "Give up the records of an agent that has gone, without undoing them",
		Long: "Give up what is recorded for an agent that has gone, whatever its owner and its objects. Objects that other agents want are " +
			"then theirs; those that none of them wants are listed, and left in place for good.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("agent") {
				return usageError{errors.New("name the agent that has gone: --agent")}
			}
			return a.recording(cmd, a.release)
		},
	}
	a.outputFlag(c.Flags())
	a.recordFlags(c.Flags())
	a.lockFlags(c.Flags())
	c.Flags().BoolVar(&a.force, "force", false, "also while the agent is running")
	return c
}

// released is the outcome of a release.
type released struct {
	Agent    string   `json:"agent"`
	Recorded int      `json:"recorded"`
	Left     []string `json:"left"` // objects
}

// release gives up the agent's records, unless it is alive.
func (a *app) release(ctx context.Context) error {
	agents, err := a.agents(ctx)
	recorded, statusErr := a.book.Status(ctx)
	if err := errors.Join(err, statusErr); err != nil {
		return err
	}
	v := released{Agent: a.agent, Left: []string{}}
	if agent := agentIn(agents, a.agent); agent != nil {
		if err := a.hasGone(ctx, *agent); err != nil && !a.force {
			return fmt.Errorf("release agent %q: %w (or give --force)", a.agent, err)
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
