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
	"github.com/slipway-dev/slipway/cleanup"
)

// uninstallAll undoes the changes of all agents in the state directory.
func (a *app) uninstallAll(cmd *cobra.Command, dryRun bool) error {
	if err := a.journalAsked(); err != nil {
		return err
	}
	all := &allAgents{Node: a.node(cmd.Context()), app: a}
	if agents, err := all.list(cmd.Context()); err != nil || len(agents) == 0 {
		if err == nil {
			err = a.uninstall(cmd, nil, dryRun) // of leftovers beside them
		}
		return err
	}
	p := &bootstrap.Plan{Host: a.host(), Journal: all, Node: a.nodeName, Version: version(), Command: a.name}
	return a.show(cmd.Context(), func(ctx context.Context) (*bootstrap.Report, error) {
		p.Trace = a.trace
		if dryRun {
			return dry(p.CheckRevertAll(ctx))
		}
		return p.RevertAll(ctx)
	})
}

// allAgents is the journal of a plan that undoes the changes of all agents. Its steps are
// named AGENT/STEP.
type allAgents struct {
	*journal.Node
	app     *app
	op      string
	enter   journal.Enter
	agents  []journal.Agent
	entered map[string]func(report []byte) error // by agent: keeps the report
}

func (all *allAgents) list(ctx context.Context) ([]journal.Agent, error) {
	return all.Agents(ctx, all.app.host().Enter)
}

// Identity names no agent, for it is about all of them.
func (all *allAgents) Identity(context.Context) (agent, owner string, generation int) {
	return "", all.Owner, 0
}

// Enter returns an error if one of the agents is alive. A run that changes something looks
// under the node's lock.
func (all *allAgents) Enter(ctx context.Context, op string, enter journal.Enter) (inside context.Context, leave func() error, err error) {
	all.op, all.enter, all.entered = op, enter, map[string]func([]byte) error{}
	if all.agents, err = all.list(ctx); err != nil {
		return nil, nil, err
	}
	var errs []error
	for _, agent := range all.agents {
		if err := all.app.hasGone(ctx, agent); err != nil && !all.app.force {
			errs = append(errs, fmt.Errorf("agent %q: %w (or give --force)", agent.Name, err))
		}
	}
	return ctx, func() error { return nil }, errors.Join(errs...)
}

// RevertAll undoes first the agent that came last. One whose journal cannot be read, or
// that cannot be undone, does not stop the others; it may need objects that they hold, so
// it is tried again once they have been undone.
func (all *allAgents) RevertAll(ctx context.Context, dryRun bool, report func(step, change string, err error)) error {
	var todo, failed []*undoneAgent
	for _, agent := range slices.Backward(all.agents) {
		todo = append(todo, &undoneAgent{name: agent.Name})
	}
	for range 2 * len(todo) { // at most: each round undoes something
		changed := false
		failed = nil
		for _, agent := range todo {
			changed = all.revert(ctx, agent, dryRun, report) || changed
			if agent.failed() {
				failed = append(failed, agent)
			}
		}
		if todo = failed; !changed || dryRun {
			break
		}
	}
	var errs []error
	for _, agent := range failed {
		for _, f := range agent.failures {
			report(agent.name+"/"+f.step, "", f.err)
		}
		errs = append(errs, agent.err)
	}
	return errors.Join(errs...)
}

// undoneAgent is the result of undoing an agent: its failures, in a step or in none.
type undoneAgent struct {
	name     string
	failures []failedStep
	err      error
}

type failedStep struct {
	step string
	err  error
}

func (u *undoneAgent) failed() bool { return u.err != nil || len(u.failures) > 0 }

// revert undoes an agent, and reports the changes.
func (all *allAgents) revert(ctx context.Context, agent *undoneAgent, dryRun bool, report func(step, change string, err error)) (changed bool) {
	n := all.app.nodeOf(ctx, agent.name)
	n.AnyOwner = true
	*agent = undoneAgent{name: agent.name}
	inside, leave, err := n.Enter(ctx, all.op, all.enter)
	if err == nil {
		all.entered[agent.name] = func(report []byte) error { return n.SaveReport(inside, report) }
		err = n.RevertAll(inside, dryRun, func(step, change string, err error) {
			changed = changed || change != ""
			if err != nil {
				agent.failures = append(agent.failures, failedStep{step, err})
			}
			report(agent.name+"/"+step, change, nil)
		})
		err = errors.Join(err, leave())
	}
	if err != nil {
		agent.err = fmt.Errorf("agent %q: %w", agent.name, err)
	}
	return changed
}

// SaveReport keeps the report for each agent with remaining entries.
func (all *allAgents) SaveReport(_ context.Context, report []byte) error {
	var errs []error
	for _, keep := range all.entered {
		errs = append(errs, keep(report))
	}
	return errors.Join(errs...)
}

// hasGone returns an error if an agent of the list is alive, or if it cannot tell.
func (a *app) hasGone(ctx context.Context, agent journal.Agent) error {
	if agent.Alive != "" {
		return fmt.Errorf("%w: %s: stop it first", cleanup.ErrAgentAlive, agent.Alive)
	}
	return errors.Join(agent.AliveErr, a.hasEnded(ctx, agent.Name, nil))
}

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
