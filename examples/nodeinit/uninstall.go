// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cniinstall"
)

func (a *app) uninstall(cmd *cobra.Command, _ []string) error {
	chosen := len(a.skip)+len(a.only) > 0
	if a.allAgents && chosen {
		return usage("--all-agents undoes everything: it goes without --only and --skip")
	}
	all, op := slices.DeleteFunc(slices.Clone(stepNames), a.leftOut), "revert"
	if a.dryRun {
		op = "check-revert"
	}
	return a.reporting(cmd, op, all, func() error {
		if err := a.needBook(cmd.Context()); err != nil {
			return err
		}
		var steps []string // nil: all that is recorded
		if chosen {
			steps = all
		}
		if a.row.only == "" {
			return a.undo(cmd, steps)
		}
		first, err := a.agentsConfStep(cmd.Context())
		if err != nil {
			return err
		}
		return a.takeBack(cmd, steps, first...)
	})
}

// preStop is uninstall-cni. As the hook of a pod that ends, it does nothing unless the agent's
// configuration asks for it, or where the node is a newer pod's by now.
func (a *app) preStop(cmd *cobra.Command, args []string) error {
	if a.gateDir == "" {
		return a.uninstall(cmd, args)
	}
	enabled, err := cniinstall.UninstallEnabled(a.gateDir)
	if err != nil {
		return err
	}
	if !enabled {
		fmt.Fprintf(a.stderr, "nothing is removed: cni-uninstall in %s is not true\n", bootstrap.OneLine(a.gateDir))
		return nil
	}
	if err = a.uninstall(cmd, args); errors.Is(err, ledger.ErrNotOwner) {
		a.warn(err.Error())
		return nil
	}
	return err
}

// undo undoes the recorded changes of the steps, or all of them if steps is nil. If
// nothing is recorded, or nothing any more, the node must have no object with a mark of this
// agent: otherwise the state directory is another one, or lost.
func (a *app) undo(cmd *cobra.Command, steps []string) error {
	before, err := a.isEmpty(cmd.Context())
	if err != nil {
		return err
	}
	if err := a.takeBack(cmd, steps); err != nil {
		return err
	}
	if now, err := a.isEmpty(cmd.Context()); err != nil || !now {
		return err
	}
	return a.unrecorded(cmd.Context(), before)
}

// takeBack undoes what is recorded of the steps, or everything if steps is nil; in a dry run,
// it lists the changes. More steps are undone first.
func (a *app) takeBack(cmd *cobra.Command, steps []string, more ...bootstrap.Step) error {
	p, run := a.plan(cmd.Context()), (*bootstrap.Plan).Revert
	p.Ledger.MayUndo = func(context.Context) error { return a.mayUndo(cmd) } // under the lock, before which an agent may still start
	switch all := steps == nil; {
	case all && (a.dryRun || len(more) == 0 && a.isUntouched(cmd.Context())): // then there is nothing to lock
		run = (*bootstrap.Plan).CheckUninstall
	case all:
		run = (*bootstrap.Plan).Uninstall
	case a.dryRun:
		run = (*bootstrap.Plan).CheckRevert
	}
	if steps == nil && !a.allAgents {
		steps = stepNames // also those of which nothing is recorded
	}
	for _, name := range steps { // the records say what to undo, without what the steps want
		p.Steps = append(p.Steps, bootstrap.Step{Name: name, Skip: "it is to be undone"})
	}
	p.Steps = append(p.Steps, more...)
	staysReady := a.staysReady != "" && a.networks(cmd.Context()) > 0
	return a.showPlan(cmd.Context(), p, func(p *bootstrap.Plan, ctx context.Context) (*bootstrap.Report, error) {
		report, err := run(p, ctx)
		if a.dryRun {
			return dry(report, err)
		}
		report.Op = "revert"
		if staysReady && a.networks(ctx) == 0 {
			fmt.Fprintf(a.stderr, "note: no CNI configuration is left in %s, and CRI-O may go on reporting the node as ready: pods that are scheduled here then get no network; cordon the node, or restart CRI-O\n", bootstrap.OneLine(a.staysReady))
		}
		return report, err
	})
}

// networks counts the configurations without which the runtime may stay ready all the same.
func (a *app) networks(ctx context.Context) (n int) {
	_ = a.host().Do(ctx, []string{"mnt"}, func(ctx context.Context) error { // without the host, nothing is undone
		all, err := cniinstall.Configs(ctx, a.staysReady)
		n = len(slices.DeleteFunc(all, func(c cniinstall.Conf) bool { return c.Err != nil }))
		return err
	})
	return n
}

// isUntouched reports whether the node has no state directory.
func (a *app) isUntouched(ctx context.Context) bool {
	err := a.seeing(ctx, func(context.Context) error { _, err := os.Lstat(a.stateDir); return err })
	return errors.Is(err, fs.ErrNotExist)
}

// mayUndo refuses to undo the node of a running agent, unless its owner asks for that. An
// agent without an owner may run the other commands that undo in its preStop hook.
func (a *app) mayUndo(cmd *cobra.Command) error {
	if a.force {
		return nil
	}
	if a.allAgents {
		return a.allHaveGone(cmd.Context())
	}
	_, generation, err := a.book.Owner()
	uninstall := cmd.Name() == "uninstall"
	if err != nil || !a.anyOwner && (!uninstall || generation > 0) {
		return err
	}
	if empty, err := a.isEmpty(cmd.Context()); err != nil || empty && uninstall {
		return err
	}
	if err := a.hasEnded(cmd.Context(), a.agent, a.book); err != nil {
		return fmt.Errorf("%s: %w", cmd.Name(), err)
	}
	return nil
}

// allHaveGone returns an error for each agent of the node that is alive.
func (a *app) allHaveGone(ctx context.Context) error {
	agents, err := a.agents(ctx)
	errs := []error{err}
	for _, agent := range agents {
		if err := a.hasGone(ctx, agent); err != nil {
			errs = append(errs, fmt.Errorf("agent %q: %w", agent.Name, err))
		}
	}
	return errors.Join(errs...)
}

// unrecorded returns an error if the node has objects made by this program's agent. Those
// that another ledger has recorded count if this one was empty from the start.
func (a *app) unrecorded(ctx context.Context, fromTheFirst bool) error {
	orphans, err := a.orphans(ctx)
	if err != nil {
		return fmt.Errorf("look for unrecorded objects: %w", err)
	}
	var errs []error
	for _, m := range orphans {
		switch elsewhere := a.isRecordedElsewhere(ctx, m); {
		case m.Agent != a.agent && !a.allAgents, elsewhere && !fromTheFirst:
		case elsewhere:
			errs = append(errs, fmt.Errorf("nothing is recorded in %s, and %s was made here: undo it by nodeinit uninstall --state-dir=%s", a.stateDir, m.Object, m.Dir))
		default:
			errs = append(errs, fmt.Errorf("nothing is recorded in %s, and %s was made here: undo it with the --state-dir that it was made with, or if that is lost, remove it: %s", a.stateDir, m.Object, m.Remove))
		}
	}
	if len(errs) == 0 && fromTheFirst {
		out := a.stdout
		if a.output == formatJSON {
			out = a.stderr
		}
		agents, err := a.agents(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "nothing is recorded in %s%s\n", bootstrap.OneLine(a.stateDir), butOf(a.agent, agents))
	}
	return errors.Join(errs...)
}

// isRecordedElsewhere reports whether the ledger that an object names has a record of it.
func (a *app) isRecordedElsewhere(ctx context.Context, m ledger.Marked) bool {
	if m.Dir == "" || m.Dir == a.stateDir {
		return false
	}
	b, err := a.bookOf(ctx, &ledger.Ledger{Dir: m.Dir, Agent: a.agent, NoOwner: true})
	if err != nil {
		return false // it is none that uninstall could undo
	}
	recorded, err := b.Status(ctx)
	return err == nil && slices.ContainsFunc(recorded.Records, func(r ledger.Record) bool { return r.Kind == m.Kind && r.Object == m.Object })
}
