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
