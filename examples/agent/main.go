// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command agent is the smallest agent that prepares its own node: it resolves
// its configuration, brings the node to the state it needs, looks again on a
// timer and repairs what has changed, and answers a health probe from the last
// report. A real agent would go on from here to its datapath.
//
// It is an example of embedding: everything it does to the node is in plan.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/flock"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/bootstrap/reconcile"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/sysctl"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	a := &agent{log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	flag.StringVar(&a.host.Proc, "host-proc", "", "where the host's /proc is mounted; empty: this process's own namespaces")
	flag.StringVar(&a.sources, "source", "env:AGENT_", "configuration sources: dir:PATH, file:PATH, env:PREFIX, separated by commas")
	flag.StringVar(&a.dest, "dest", "/run/slipway-agent/config", "directory to write the resolved configuration to")
	flag.StringVar(&a.owner, "owner", os.Getenv("POD_UID"), "on whose behalf, such as a pod's UID: in a rolling update the later one owns the node")
	flag.StringVar(&a.stateDir, "state-dir", "/var/lib/slipway", "where changes to the node are recorded, on the host")
	flag.StringVar(&a.health, "health", "127.0.0.1:9879", "address of the health probe")
	flag.DurationVar(&a.interval, "interval", time.Minute, "how often to look at the node again")
	flag.Parse()
	if a.interval <= 0 || a.stateDir == "" {
		fmt.Fprintln(os.Stderr, "agent: --interval must be positive, and --state-dir a directory")
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
	interval                               time.Duration
	log                                    *slog.Logger
	journal                                *journal.Journal

	mu     sync.Mutex
	report *bootstrap.Report
	err    error
}

// run serves until ctx ends. What it has done to the node stays: an agent is
// restarted more often than it is removed.
func (a *agent) run(ctx context.Context) (err error) {
	if err := a.host.Check(); err != nil {
		return err
	}
	if err := a.openJournal(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.journal.Close()) }()
	listener, err := net.Listen("tcp", a.health)
	if err != nil {
		return fmt.Errorf("health probe: %w", err)
	}
	server := &http.Server{Handler: a.handler(), ReadHeaderTimeout: 5 * time.Second}
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { cancel(fmt.Errorf("health probe: %w", server.Serve(listener))) }()
	a.log.Info("health probe", "address", listener.Addr().String())

	changed := make(chan struct{}, 1)
	go a.watch(work, changed)
	go a.watchLinks(work, changed)
	err = reconcile.Loop{Plan: a.plan(), Interval: a.interval, Trigger: changed, Done: a.done}.Run(work)
	if ctx.Err() != nil {
		err = nil // told to leave
	}
	down, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer stop()
	return errors.Join(err, server.Shutdown(down))
}

// done keeps the outcome for the probe.
func (a *agent) done(report *bootstrap.Report, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.report, a.err = report, err
	if err != nil {
		a.log.Error("the node is not ready", "error", err)
	}
}

// watch has the plan applied as soon as a mounted ConfigMap has changed. All else
// that drifts, the loop's timer sees.
func (a *agent) watch(ctx context.Context, changed chan<- struct{}) {
	sources, err := a.sourceList()
	if err != nil {
		return // the loop says so
	}
	known := false
	err = configresolve.Watch(ctx, configresolve.Resolver{Sources: sources}, func(u configresolve.Update) error {
		if known && u.Err == nil {
			tell(changed)
		}
		known = true
		return nil
	})
	if ctx.Err() == nil {
		a.log.Info("changes of the configuration are seen by the timer only", "why", err)
	}
}

// watchLinks has the plan applied as soon as there is another link.
func (a *agent) watchLinks(ctx context.Context, changed chan<- struct{}) {
	err := a.host.Do(ctx, hostns.Net, func(ctx context.Context) error {
		return sysctl.Watch(ctx, func() { tell(changed) })
	})
	if ctx.Err() == nil {
		a.log.Info("new links are seen by the timer only", "why", err)
	}
}

func tell(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default: // it has been told, and has not looked yet
	}
}

func (a *agent) sourceList() ([]configresolve.Source, error) {
	specs, err := configresolve.ParseSpecs(strings.Split(a.sources, ","), configresolve.SpecDefaults{})
	if err != nil {
		return nil, err
	}
	var sources []configresolve.Source
	for _, spec := range specs {
		source, err := spec.Source(os.Environ())
		if err != nil {
			return nil, err
		}
		sources = append(sources, source)
	}
	return sources, nil
}

func (a *agent) resolve(ctx context.Context) (*configresolve.Config, error) {
	sources, err := a.sourceList()
	if err != nil {
		return nil, err
	}
	return configresolve.Resolve(ctx, sources...)
}

// plan is what this agent needs of a node.
func (a *agent) plan() *bootstrap.Plan {
	const mount, net = hostns.Mount, hostns.Mount | hostns.Net
	rp := sysctl.Cilium() // the reverse path filter off
	return &bootstrap.Plan{
		Trace:   bootstrap.LogTrace(a.log),
		Lock:    a.host.Lock(flock.File{Owner: a.owner}.Lock), // keeps a run of nodeinit on the same node and this one apart
		Journal: a.journal,
		Prepare: a.prepare,
		Steps: []bootstrap.Step{
			{Name: "config"},
			{Name: "cgroup", Action: a.host.In(mount|hostns.Cgroup, cgroup.Mount{Path: cgroup.Cilium().Path, Journal: a.journal})},
			{Name: "bpffs", Action: a.host.In(mount, bpffs.Mount{Journal: a.journal})},
			{Name: "sysctl", Action: a.host.In(net, sysctl.DropIn{Name: rp.Name, Settings: rp.Settings, Journal: a.journal})},
			{
				Name: "ip-forwarding", After: []string{"sysctl"},
				Action: a.host.In(net, sysctl.Settings{Values: sysctl.Forwarding(), Journal: a.journal}),
			},
		},
	}
}

// prepare reads the configuration, anew for each run, and gives the plan's steps
// what depends on it.
func (a *agent) prepare(ctx context.Context, p *bootstrap.Plan) error {
	config, err := a.resolve(ctx)
	if err != nil {
		return &bootstrap.StepError{Step: "config", Op: "resolve", Err: err}
	}
	p.Step("config").Action = configdir.Dir{Path: a.dest, Config: config}
	var settings struct {
		Forwarding bool `config:"enable-ip-forwarding" default:"true"`
	}
	if err := configresolve.Decode(config, &settings); err != nil {
		return &bootstrap.StepError{Step: "config", Op: "decode", Err: err}
	}
	p.Step("ip-forwarding").Absent = !settings.Forwarding
	return nil
}

// openJournal opens the node's journal, with what undoes the steps of plan. It is
// on the host, and so is all that it holds.
func (a *agent) openJournal(ctx context.Context) error {
	const mount, net = hostns.Mount, hostns.Mount | hostns.Net
	o := journal.Options{Owner: a.owner, Handlers: []journal.Handler{
		journal.In(a.host.On(mount|hostns.Cgroup), cgroup.Handler{}),
		journal.In(a.host.On(mount), bpffs.Handler{}),
		journal.In(a.host.On(net), sysctl.Handler{}),
	}}
	return a.host.Do(ctx, mount, func(context.Context) (err error) {
		a.journal, err = journal.Open(a.stateDir, o)
		return err
	})
}

// handler answers 200 when the node was last seen as it should be, else 503;
// a request with the header "brief: true" gets one line.
func (a *agent) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		report, err := a.report, a.err
		a.mu.Unlock()
		status, text := http.StatusOK, "ok"
		switch {
		case report == nil:
			status, text = http.StatusServiceUnavailable, "the node has not been looked at yet"
		case err != nil:
			status, text = http.StatusServiceUnavailable, strconv.Quote(err.Error()) // of one line
		}
		w.WriteHeader(status)
		if r.Header.Get("brief") == "true" || report == nil {
			fmt.Fprintln(w, text)
			return
		}
		if err := report.WriteText(w); err != nil {
			a.log.Warn("health probe", "error", err)
		}
	})
	return mux
}
