// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/bootstrap"
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

// node returns the record of the changes on the node, with a handler for each kind that
// this program records, or nil if nothing is recorded.
func (a *app) node(ctx context.Context) *journal.Node {
	if a.stateDir != "" && a.remembers == nil {
		a.remembers = a.nodeOf(ctx, a.agent)
	}
	return a.remembers
}

// nodeOf returns the record of an agent's changes.
func (a *app) nodeOf(ctx context.Context, agent string) *journal.Node {
	confDir, pluginDirs := a.undoesIn(ctx)
	return &journal.Node{
		Dir: a.stateDir, Agent: agent, Owner: a.owner, NoOwner: a.owner == "",
		TakeOver: a.takeOver, AnyOwner: a.anyOwner, AcceptKept: a.acceptKept,
		Override: a.override, Adopt: a.adopt, Remedy: ": --state-dir names another",
		Handlers: []journal.Handler{
			hostpath.Handler{},
			cgroup.Handler{},
			bpffs.Handler{Remedy: "nodeinit cleanup --all-state removes an agent's leftovers there"},
			sysctl.Handler{Dir: a.sysctlConfDir},
			cniinstall.Handler{
				ConfDir: confDir, PluginDirs: pluginDirs, Sandboxes: a.sandboxes,
				KeepConf: a.userManagedConf, KeepPlugins: a.keepPlugins, Force: a.force,
			},
			configdir.Handler{},
		},
	}
}

// openJournal opens the node's journal, to look up its entries.
func (a *app) openJournal(ctx context.Context) error {
	n := a.node(ctx)
	if n == nil || a.journal != nil {
		return nil
	}
	a.at.work("", "--state-dir "+a.stateDir)
	var err error
	if a.journal, err = n.Open(ctx, a.host().Enter); err == nil {
		a.cleanups = append(a.cleanups, func() { _ = a.journal.Close() }) // nothing was written through it
	}
	return err
}

// undoesIn is where other owners have configurations, which keep the plugins that they name,
// and where the runtime looks for plugins, if it says so. Nothing else about undoing depends
// on the flags.
func (a *app) undoesIn(ctx context.Context) (confDir string, pluginDirs []string) {
	confDir = folderOr(a.cniConfDir, "")
	if !a.userManagedConf && !strings.HasPrefix(a.name, "uninstall") {
		return cmp.Or(confDir, usualConfDir), nil
	}
	looks, _ := a.runtime(ctx)
	if pluginDirs = looks.PluginDirs; len(pluginDirs) > 0 {
		pluginDirs = distinct(append([]string{folderOr(a.cniBinDir, "")}, pluginDirs...)...)
	}
	return cmp.Or(confDir, looks.ConfDir, usualConfDir), pluginDirs
}

// lock is the node's lock: one run at a time.
func (a *app) lock(ctx context.Context) (unlock func() error, err error) {
	return a.host().Lock(ctx, a.owner, nil)
}

// locked calls do under the node's lock.
func (a *app) locked(ctx context.Context, do func() error) error {
	unlock, err := a.lock(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(), unlock())
}

// plan is a plan of this node.
func (a *app) plan(ctx context.Context, steps ...bootstrap.Step) *bootstrap.Plan {
	p := &bootstrap.Plan{Host: a.host(), Node: a.nodeName, Version: version(), Command: a.name, Steps: steps}
	if n := a.node(ctx); n != nil {
		p.Journal = n
	} else {
		a.logger().Warn("nothing is recorded, so uninstall cannot undo it: --state-dir is empty")
	}
	return p
}

// undo undoes the entries of the steps, or everything if steps is nil. More steps are
// undone first.
func (a *app) undo(ctx context.Context, steps []string, dryRun bool, more ...bootstrap.Step) (*bootstrap.Report, error) {
	p := a.plan(ctx)
	p.Trace = a.trace
	all := steps == nil
	if all {
		steps = stepNames
	}
	for _, name := range steps { // the journal knows what to undo, without their actions
		p.Steps = append(p.Steps, bootstrap.Step{Name: name, Skip: true})
	}
	p.Steps = append(p.Steps, more...)
	if all && !dryRun {
		if empty, err := a.journal.Empty(); err != nil || !empty {
			return p.RevertAll(ctx)
		}
		report, err := p.CheckRevertAll(ctx) // nothing to lock, and nothing to do
		report.Op = bootstrap.OpRevert
		return report, err
	}
	switch {
	case all:
		return p.CheckRevertAll(ctx)
	case dryRun:
		return p.CheckRevert(ctx)
	}
	return p.Revert(ctx)
}

// mayUndo refuses to undo the node of a running agent, unless its owner asks for that. An
// agent without an owner may run the other commands that undo in its preStop hook.
func (a *app) mayUndo(cmd *cobra.Command) error {
	_, generation, err := a.journal.Owner()
	uninstall := cmd.Name() == "uninstall"
	if err != nil || a.force || !a.anyOwner && (!uninstall || generation > 0) {
		return err
	}
	if empty, err := a.journal.Empty(); err != nil || empty && uninstall {
		return err
	}
	if err := a.hasEnded(cmd.Context(), a.agent, a.journal); err != nil {
		return fmt.Errorf("%s: %w (or give --force)", cmd.Name(), err)
	}
	return nil
}

// hasEnded returns an error if an agent is alive, or if it cannot tell. Its owner counts
// if its journal is given.
func (a *app) hasEnded(ctx context.Context, agent string, j *journal.Journal) error {
	own := cleanup.Ownership{Agent: agent} // only its owner is known
	if cilium := cleanup.Cilium(); agent == cilium.Agent {
		own = cilium // where that can be seen depends on no flag
	}
	// The host's cgroup namespace shows which pods exist.
	return a.host().Do(ctx, hostns.Mount|hostns.Cgroup, func(ctx context.Context) error { return own.AgentAlive(ctx, j) })
}
