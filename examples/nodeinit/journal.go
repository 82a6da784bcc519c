// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/flock"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/sysctl"
)

// openJournal opens the node's journal, on the host, with a handler for all that
// this program records. Nil: nothing is recorded.
func (a *app) openJournal(ctx context.Context) error {
	if a.stateDir == "" || a.journal != nil {
		return nil
	}
	o := journal.Options{
		Agent: a.agent, Owner: a.owner, TakeOver: a.takeOver, AnyOwner: a.anyOwner, AcceptKept: a.acceptKept,
		Handlers: []journal.Handler{
			journal.In(a.host().On(hostns.Mount), hostpath.Handler{}),
			journal.In(a.host().On(hostns.Mount|hostns.Cgroup), cgroup.Handler{}),
			journal.In(a.host().On(hostns.Mount), bpffs.Handler{Remedy: "nodeinit cleanup --all-state removes what an agent has left there"}),
			journal.In(a.host().On(hostns.Mount|hostns.Net), sysctl.Handler{Dir: a.sysctlConfDir}),
			journal.In(a.host().On(hostns.Mount), cniinstall.Handler{ConfDir: a.handlersConfDir(ctx), KeepConf: a.userManagedConf, KeepPlugins: a.keepPlugins, Force: a.force}),
			configdir.Handler{}, // its directory is on this side
		},
	}
	err := a.host().Do(ctx, hostns.Mount, func(context.Context) (err error) {
		a.journal, err = journal.Open(a.stateDir, o)
		return err
	})
	if err == nil {
		a.cleanups = append(a.cleanups, func() { _ = a.journal.Close() }) // nothing was written through it
	}
	return err
}

// handlersConfDir is where configurations are that are somebody else's, and keep
// the plugins that they name. Nothing else about undoing depends on the flags.
func (a *app) handlersConfDir(ctx context.Context) string {
	if a.userManagedConf && folderOr(a.cniConfDir, "") == "" {
		return a.runtime(ctx).ConfDir
	}
	return folderOr(a.cniConfDir, usualConfDir)
}

// lockFile is the node's lock, for who is on the host already.
func (a *app) lockFile() flock.File {
	file := flock.File{Timeout: a.lockTimeout, Owner: a.owner}
	if file.Timeout == 0 {
		file.Timeout = -1 // not at all; there zero is the default
	}
	return file
}

// lock is the node's lock: one run at a time.
func (a *app) lock(ctx context.Context) (unlock func() error, err error) {
	unlock, err = a.host().Lock(a.lockFile().Lock)(ctx)
	if errors.Is(err, fs.ErrNotExist) && a.hostProc == "" {
		err = fmt.Errorf("%w; in a container, give --host-proc", err)
	}
	return unlock, err
}

// plan is a plan of this node.
func (a *app) plan(steps ...bootstrap.Step) *bootstrap.Plan {
	p := &bootstrap.Plan{Lock: a.lock, Steps: steps}
	if a.journal != nil {
		p.Journal = a.journal
	}
	return p
}

// undo undoes what is recorded for the steps, or everything if steps is nil, and
// reports it by steps. More steps are undone first.
func (a *app) undo(ctx context.Context, steps []string, dryRun bool, more ...bootstrap.Step) (*bootstrap.Report, error) {
	if steps != nil {
		return a.undoSteps(ctx, steps, dryRun, more...)
	}
	if dryRun {
		all, err := a.journal.CheckRevertAll(ctx)
		return a.byStep(ctx, all, err, bootstrap.WouldChange), err
	}
	if empty, err := a.journal.Empty(); err != nil || empty {
		return a.byStep(ctx, nil, err, bootstrap.Unchanged), err // nothing to lock, and nothing to do
	}
	unlock, err := a.lock(ctx)
	if err != nil {
		return a.byStep(ctx, nil, err, bootstrap.NotRun), err
	}
	end := a.timeline.Begin("undo all that is recorded")
	all, err := a.journal.RevertAll(ctx)
	end(undone(all, err))
	return a.byStep(ctx, all, err, bootstrap.Changed), errors.Join(err, unlock())
}

func undone(all []journal.Undone, err error) bootstrap.Status {
	switch {
	case err != nil:
		return bootstrap.Failed
	case len(all) == 0:
		return bootstrap.Unchanged
	}
	return bootstrap.Changed
}

// undoSteps needs no actions for the names: the journal knows what to undo.
func (a *app) undoSteps(ctx context.Context, names []string, dryRun bool, more ...bootstrap.Step) (*bootstrap.Report, error) {
	p := a.plan()
	for _, name := range names {
		p.Steps = append(p.Steps, bootstrap.Step{Name: name, Skip: true})
	}
	p.Steps = append(p.Steps, more...)
	p.Trace = a.trace
	if dryRun {
		return p.CheckRevert(ctx)
	}
	return p.Revert(ctx)
}

// byStep reports what became of the entries: the steps of this program's plan,
// last first, then those of others. An error that came before the first entry
// left them all as they are.
func (a *app) byStep(ctx context.Context, all []journal.Undone, err error, done bootstrap.Status) *bootstrap.Report {
	names := slices.Clone(stepNames)
	slices.Reverse(names)
	for _, u := range all {
		if !slices.Contains(names, u.Entry.Step) {
			names = append(names, u.Entry.Step)
		}
	}
	report := &bootstrap.Report{}
	for _, name := range names {
		r := resultOf(name, all, done)
		if len(all) == 0 && err != nil {
			r.Status = bootstrap.NotRun
		}
		report.Results = append(report.Results, r)
		a.trace.StepDone(ctx, bootstrap.OpRevert, r)
	}
	return report
}

func resultOf(step string, all []journal.Undone, done bootstrap.Status) bootstrap.Result {
	r := bootstrap.Result{Step: step, Status: bootstrap.Unchanged}
	var errs []error
	for _, u := range all {
		switch {
		case u.Entry.Step != step:
		case u.IsFailure():
			errs = append(errs, u.Err)
		case u.Err == nil && u.Change != "":
			r.Status = done
			r.Changes = append(r.Changes, u.Change)
		}
	}
	if err := errors.Join(errs...); err != nil {
		r.Status, r.Err = bootstrap.Failed, &bootstrap.StepError{Step: step, Op: "revert", Err: err}
	}
	return r
}

// mayUndo refuses to take the node away from an agent that runs, unless the owner asks
// for that. The other commands that undo are also what an agent without an owner runs
// in its preStop.
func (a *app) mayUndo(cmd *cobra.Command) error {
	_, generation, err := a.journal.Owner()
	uninstall := cmd.Name() == "uninstall"
	if err != nil || a.force || !a.anyOwner && (!uninstall || generation > 0) {
		return err
	}
	if empty, err := a.journal.Empty(); err != nil || empty && uninstall {
		return err
	}
	// Which pods there are is seen from the host's cgroup namespace. Where the agent can
	// be seen depends on no flag.
	err = a.host().Do(cmd.Context(), hostns.Mount|hostns.Cgroup, func(ctx context.Context) error {
		return cleanup.Cilium().AgentAlive(ctx, a.journal)
	})
	if err != nil {
		return fmt.Errorf("%s: %w (or give --force)", cmd.Name(), err)
	}
	return nil
}
