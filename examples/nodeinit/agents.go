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
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/cleanup"
)

// uninstallAll undoes what is recorded of all agents in the state directory.
func (a *app) uninstallAll(cmd *cobra.Command, dryRun bool) error {
	if len(a.skip)+len(a.only) > 0 {
		return usageError{errors.New("--all-agents undoes everything: it goes without --only and --skip")}
	}
	if !dryRun {
		if err := needsRoot(os.Geteuid(), cmd.Name()); err != nil {
			return err
		}
	}
	if err := a.journalAsked(); err != nil {
		return err
	}
	all := &allAgents{Node: a.node(cmd.Context()), app: a}
	if agents, err := all.list(cmd.Context()); err != nil || len(agents) == 0 {
		if err == nil {
			err = a.uninstall(cmd, nil, dryRun) // of what may be left beside them
		}
		return err
	}
	p := &bootstrap.Plan{Host: a.host(), Journal: all, Node: a.nodeName, Version: version()}
	return withKept(a.show(cmd.Context(), func(ctx context.Context) (*bootstrap.Report, error) {
		p.Trace = a.trace
		if dryRun {
			return p.CheckRevertAll(ctx)
		}
		return p.RevertAll(ctx)
	}))
}

// allAgents is the journal of a plan that undoes what is recorded of all agents. Its steps
// are named AGENT/STEP.
type allAgents struct {
	*journal.Node
	app     *app
	op      string
	enter   journal.Enter
	agents  []journal.Agent
	entered []func(report []byte) error // which keep the report for an agent
}

func (all *allAgents) list(ctx context.Context) ([]journal.Agent, error) {
	return all.Agents(ctx, all.app.host().Enter)
}

// Identity names no agent, for it is about all of them.
func (all *allAgents) Identity(context.Context) (agent, owner string, generation int) {
	return "", all.Owner, 0
}

// Enter returns an error if one of the agents is alive: in a run that changes something
// that is asked under the node's lock.
func (all *allAgents) Enter(ctx context.Context, op string, enter journal.Enter) (inside context.Context, leave func() error, err error) {
	all.op, all.enter, all.entered = op, enter, nil
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

// RevertAll undoes the agent first that came last. One whose journal cannot be read, or
// that cannot be undone, does not stop the others.
func (all *allAgents) RevertAll(ctx context.Context, dryRun bool, report func(step, change string, err error)) error {
	var errs []error
	for _, agent := range slices.Backward(all.agents) {
		if err := all.revert(ctx, agent.Name, dryRun, report); err != nil {
			errs = append(errs, fmt.Errorf("agent %q: %w", agent.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (all *allAgents) revert(ctx context.Context, agent string, dryRun bool, report func(step, change string, err error)) error {
	n := all.app.nodeOf(ctx, agent)
	n.AnyOwner = true
	inside, leave, err := n.Enter(ctx, all.op, all.enter)
	if err != nil {
		return err
	}
	all.entered = append(all.entered, func(report []byte) error { return n.SaveReport(inside, report) })
	err = n.RevertAll(inside, dryRun, func(step, change string, err error) { report(agent+"/"+step, change, err) })
	return errors.Join(err, leave())
}

// SaveReport keeps the report for each agent of which something is still recorded.
func (all *allAgents) SaveReport(_ context.Context, report []byte) error {
	var errs []error
	for _, keep := range all.entered {
		errs = append(errs, keep(report))
	}
	return errors.Join(errs...)
}

// hasGone returns an error if an agent of the list is alive, or if that cannot be told.
func (a *app) hasGone(ctx context.Context, agent journal.Agent) error {
	if agent.Alive != "" {
		return fmt.Errorf("%w: %s: stop it first", cleanup.ErrAgentAlive, agent.Alive)
	}
	return errors.Join(agent.AliveErr, a.hasEnded(ctx, agent.Name, nil))
}
