// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bpfmap"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/sysctl"
)

// ledger is where the changes to the node are recorded, or nil if nothing is.
func (a *app) ledger(ctx context.Context) *ledger.Ledger {
	if a.stateDir != "" && a.remembers == nil {
		a.remembers = &ledger.Ledger{
			Dir: a.stateDir, Agent: a.agent, Owner: a.owner, NoOwner: a.owner == "", TakeOver: a.takeOver,
			AnyOwner: a.anyOwner || a.allAgents, AllAgents: a.allAgents, AcceptKept: a.acceptKept, Override: a.override, Adopt: a.adopt, Kinds: a.kinds(ctx),
		}
	}
	return a.remembers
}

// kinds are those of all steps, and of an agent that embeds the packages: what another run has
// recorded can be undone by any flags.
func (a *app) kinds(ctx context.Context) []*ledger.Kind {
	confDir, pluginDirs := a.undoesIn(ctx)
	cni := cniinstall.Uninstall{
		ConfDir: confDir, PluginDirs: pluginDirs, Sandboxes: a.sandboxes,
		KeepConf: a.userManagedConf, KeepPlugins: a.keepPlugins, Force: a.force,
	}
	own := []*ledger.Kind{ledger.File(), ledger.Dir(), cgroup.Kind, bpffs.Kind, configdir.Kind()}
	return slices.Concat(own, bpfmap.Kinds(), sysctl.DropIn{Dir: a.sysctlConfDir}.Kinds(), cni.Kinds()) // the last of a name counts
}

// undoesIn is where other owners have configurations, which keep the plugins that they name,
// and where the runtime looks for plugins, if it says so. Nothing else about undoing depends
// on the flags.
func (a *app) undoesIn(ctx context.Context) (confDir string, pluginDirs []string) {
	confDir = dirOr(a.cniConfDir, "")
	if !a.userManagedConf && !strings.HasPrefix(a.name, "uninstall") {
		return cmp.Or(confDir, usualConfDir), nil
	}
	looks, err := a.runtime(ctx)
	if a.runtimeEndpoint != "" && err != nil {
		a.warn("--runtime-endpoint: " + err.Error())
	}
	if pluginDirs = looks.PluginDirs; len(pluginDirs) > 0 {
		pluginDirs = distinct(append([]string{dirOr(a.cniBinDir, "")}, pluginDirs...)...)
	}
	if looks.CRIO.StaysReady {
		a.staysReady = looks.ConfDir
	}
	return cmp.Or(confDir, looks.ConfDir, usualConfDir), pluginDirs
}

// openBook opens the ledger, to look up what it has recorded, and returns an error if the host
// cannot be entered, or if it cannot be read. Then it is open all the same, for what mends it.
func (a *app) openBook(ctx context.Context) (err error) {
	if err := a.checkHost(); err != nil {
		return err
	}
	if a.book != nil || a.ledger(ctx) == nil {
		return nil
	}
	if a.book, err = a.bookOf(ctx, a.ledger(ctx)); err == nil {
		_, _, err = a.book.Owner()
	}
	return err
}

// bookOf opens a ledger for this run.
func (a *app) bookOf(ctx context.Context, l *ledger.Ledger) (b *ledger.Book, err error) {
	a.at.work("", "--state-dir "+l.Dir)
	err = a.seeing(ctx, func(ctx context.Context) (err error) { b, err = l.Open(ctx); return err })
	if err == nil {
		a.cleanups = append(a.cleanups, func() { _ = b.Close() }) // all that was written is safe
	}
	return b, err
}

// seeing calls f where the host's files are seen, and by its cgroups which pods exist.
func (a *app) seeing(ctx context.Context, f func(context.Context) error) error {
	return a.host().Do(ctx, []string{"mnt", "cgroup"}, f)
}

// needBook opens the ledger, without which there is nothing to show or undo. In a container
// that does not enter the host there can be none: its own would be empty.
func (a *app) needBook(ctx context.Context) error {
	if a.stateDir == "" {
		return usage("--state-dir is empty: nothing is recorded")
	}
	if err := a.checkHost(); err != nil {
		return err
	}
	if err := a.host().CheckPlaces(map[string]string{a.stateDir: ""}); err != nil {
		return err
	}
	return a.openBook(ctx)
}

// agents lists the agents of the node.
func (a *app) agents(ctx context.Context) (all []ledger.Agent, err error) {
	err = a.seeing(ctx, func(ctx context.Context) (err error) { all, err = a.book.Agents(ctx); return err })
	return all, err
}

// orphans lists the objects with a mark of an agent that are not recorded.
func (a *app) orphans(ctx context.Context) (all []ledger.Marked, err error) {
	err = a.host().Do(ctx, []string{"mnt"}, func(ctx context.Context) (err error) { all, err = a.book.Orphans(ctx); return err })
	return all, err
}

// isEmpty reports whether nothing is known of the agent, or of any if all are meant.
func (a *app) isEmpty(ctx context.Context) (bool, error) {
	agents, err := a.agents(ctx)
	return len(agents) == 0 || !a.allAgents && agentIn(agents, a.agent) == nil, err
}

// agentIn returns the agent with the name, or nil if there is none.
func agentIn(agents []ledger.Agent, name string) *ledger.Agent {
	i := slices.IndexFunc(agents, func(agent ledger.Agent) bool { return agent.Name == name })
	if i < 0 {
		return nil
	}
	return &agents[i]
}

// butOf completes "nothing is recorded", which is said of one agent, where others are recorded.
func butOf(agent string, others []ledger.Agent) string {
	if len(others) == 0 {
		return ""
	}
	var names []string
	for _, other := range others {
		names = append(names, other.Name)
	}
	return fmt.Sprintf(" of agent %q, but of %s", agent, strings.Join(names, ", "))
}

// locked calls do under the node's lock: one run at a time.
func (a *app) locked(ctx context.Context, do func() error) error {
	unlock, err := a.host().Lock(ctx, a.owner)
	if err != nil {
		return err
	}
	return errors.Join(do(), unlock())
}

// plan is a plan of this node.
func (a *app) plan(ctx context.Context, steps ...bootstrap.Step) *bootstrap.Plan {
	l := a.ledger(ctx)
	if l == nil {
		a.logger().Warn("nothing is recorded, so uninstall cannot undo it: --state-dir is empty")
	}
	p := &bootstrap.Plan{Host: a.host(), Ledger: l, Node: a.nodeName, Version: version(), Command: a.name, Steps: steps}
	if a.diff {
		p.Diff = udiff.Unified
	}
	return p
}

// hasEnded returns an error if an agent is alive, or if it cannot tell. Its owner counts
// if its book is given.
func (a *app) hasEnded(ctx context.Context, agent string, b *ledger.Book) error {
	own := cleanup.Ownership{Agent: agent} // only its owner is known
	if cilium := cleanup.Cilium(); agent == cilium.Agent {
		own = cilium // where that can be seen depends on no flag
	}
	return a.seeing(ctx, func(ctx context.Context) error { return own.AgentAlive(ctx, b) })
}

// hasGone returns an error if an agent of the list is alive, or if it cannot tell.
func (a *app) hasGone(ctx context.Context, agent ledger.Agent) error {
	if agent.Alive != "" {
		return fmt.Errorf("%w: %s: stop it first", cleanup.ErrAgentAlive, agent.Alive)
	}
	return errors.Join(agent.AliveErr, a.hasEnded(ctx, agent.Name, nil))
}
