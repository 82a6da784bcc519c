// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command agent is a small agent that prepares its own node. It waits at its gates, resolves
// its configuration, brings the node to the state it needs, opens its pinned maps, releases
// leaked addresses, publishes its CNI configuration once everything else is well, and marks its
// node as ready. Then it checks again on a timer, repairs changes, and answers a health probe
// from the last report. When it is signalled to end, it asks the cluster whether it will come
// back: if not, it undoes its changes, unless pods still need its network. A real agent would
// continue with its datapath.
//
// It is an example of embedding: everything it does to the node is in plan, and each flag adds
// a step. Without --node it needs no cluster.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/probe"
	"github.com/slipway-dev/slipway/bootstrap/reconcile"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/sysctl"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	a := &agent{log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	a.flags(flag.CommandLine)
	flag.Parse()
	if err := a.validate(); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(2)
	}
	if err := a.run(ctx); err != nil {
		a.log.Error("the agent ends", "error", err)
		os.Exit(1)
	}
	a.log.Info("the agent ends")
}

type agent struct {
	host                                   hostns.Host
	sources, dest, stateDir, owner, health string
	interval, gateTimeout                  time.Duration
	gates                                  string
	cni                                    cniFlags
	cluster                                clusterFlags
	datapath                               datapathFlags

	log      *slog.Logger
	probe    probe.Probe
	clients  clients
	cleared  bool        // leftovers of an earlier start were removed
	ready    bool        // the node was ready once
	orphaned atomic.Bool // its account was deleted
}

func (a *agent) flags(f *flag.FlagSet) {
	f.StringVar(&a.host.Proc, "host-proc", "", "where the host's /proc is mounted; empty: this process's own namespaces")
	f.StringVar(&a.sources, "source", "env:AGENT_", "configuration sources: dir:PATH, file:PATH, env:PREFIX, separated by commas")
	f.StringVar(&a.dest, "dest", "/run/slipway-agent/config", "directory to write the resolved configuration to")
	f.StringVar(&a.owner, "owner", os.Getenv("POD_UID"), "owner of the node's changes, such as a pod's UID: in a rolling update the later owner takes the node over")
	f.StringVar(&a.stateDir, "state-dir", "/var/lib/slipway", "directory of the record of changes to the node, on the host")
	f.StringVar(&a.health, "health", "", "address of the health probe; empty: 127.0.0.1:9879 and [::1]:9879")
	f.DurationVar(&a.interval, "interval", time.Minute, "interval between checks of the node")
	f.StringVar(&a.gates, "gates", "", "conditions to wait for first, separated by commas: kube-proxy, file:PATH, tcp:ADDRESS")
	f.DurationVar(&a.gateTimeout, "gate-timeout", 5*time.Minute, "how long to wait for each gate; negative: until it opens")
	a.cni.flags(f)
	a.cluster.flags(f)
	a.datapath.flags(f)
}

func (a *agent) validate() error {
	if a.interval <= 0 || a.gateTimeout == 0 || a.stateDir == "" {
		return errors.New("--interval must be positive, --gate-timeout not 0, and --state-dir a directory")
	}
	if a.cni.plugin != "" && a.cni.subnet == "" && a.cluster.node == "" {
		return errors.New("--cni needs --subnet, or --node, whose podCIDRs are read")
	}
	if _, err := a.gateSteps(); err != nil {
		return err
	}
	return errors.Join(a.cni.validate(), a.cluster.validate())
}

// run serves until ctx ends. Its changes to the node stay, unless the agent does not come
// back.
func (a *agent) run(ctx context.Context) (err error) {
	if err := a.host.Check(); err != nil {
		return err
	}
	if a.clients, err = a.cluster.connect(); err != nil {
		return err
	}
	plan, closePlugins, err := a.plan()
	if err != nil {
		return err
	}
	defer closePlugins()
	go a.watchAccount(context.WithoutCancel(ctx)) // also while it leaves
	err = a.serve(ctx, reconcile.Loop{Plan: plan, Interval: a.interval, Done: a.done})
	if ctx.Err() != nil {
		return a.leave(context.WithoutCancel(ctx), plan) // asked to end
	}
	return err
}

// serve runs the loop beside the probe.
func (a *agent) serve(ctx context.Context, loop reconcile.Loop) error {
	var addresses []string
	if a.health != "" {
		addresses = append(addresses, a.health)
	}
	listeners, err := probe.Listen(addresses...)
	if err != nil {
		return err
	}
	for _, l := range listeners {
		a.log.Info("health probe", "address", l.Addr().String())
	}
	a.probe.MaxAge = 3*a.interval + 10*time.Minute // a run may wait for gates
	work, cancel := context.WithCancelCause(ctx)
	probing := make(chan error, 1)
	go func() {
		err := a.probe.Serve(work, listeners...)
		cancel(err)
		probing <- err
	}()
	changed := make(chan struct{}, 1)
	go a.watch(work, changed)
	go a.watchLinks(work, changed)
	loop.Trigger = changed
	err = loop.Run(work)
	cancel(nil)
	return errors.Join(err, <-probing)
}

// watch triggers a run as soon as a mounted ConfigMap changes. The loop's timer notices all
// other drift.
func (a *agent) watch(ctx context.Context, changed chan<- struct{}) {
	sources, err := a.sourceList()
	if err != nil {
		return // the loop reports it
	}
	known := false
	err = configresolve.Watch(ctx, configresolve.Resolver{Sources: sources}, func(u configresolve.Update) error {
		if known && u.Err == nil {
			notify(changed)
		}
		known = true
		return nil
	})
	if ctx.Err() == nil {
		a.log.Info("changes of the configuration are seen by the timer only", "why", err)
	}
}

// watchLinks triggers a run as soon as a link appears.
func (a *agent) watchLinks(ctx context.Context, changed chan<- struct{}) {
	err := a.host.Do(ctx, []string{"net"}, func(ctx context.Context) error {
		return sysctl.Watch(ctx, func() { notify(changed) })
	})
	if ctx.Err() == nil {
		a.log.Info("new links are seen by the timer only", "why", err)
	}
}

func notify(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default: // a signal is pending already
	}
}
