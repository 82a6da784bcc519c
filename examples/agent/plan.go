// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bpfmap"
	"github.com/slipway-dev/slipway/bootstrap/flock"
	"github.com/slipway-dev/slipway/bootstrap/gate"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/sysctl"
)

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

// plan is what this agent needs of a node, in the order in which a node needs it.
func (a *agent) plan() (plan *bootstrap.Plan, closePlugins func(), err error) {
	const mount, net = hostns.Mount, hostns.Mount | hostns.Net
	rp := sysctl.Cilium() // the reverse path filter off
	steps, err := a.gateSteps()
	if err != nil {
		return nil, nil, err
	}
	steps = append(steps, []bootstrap.Step{
		{Name: "config"},
		{Name: "cgroup", Action: a.host.In(mount|hostns.Cgroup, cgroup.Mount{Path: cgroup.Cilium().Path, Journal: a.journal})},
		{Name: "bpffs", Action: a.host.In(mount, bpffs.Mount{Journal: a.journal})},
		{Name: "sysctl", Action: a.host.In(net, sysctl.DropIn{Name: rp.Name, Settings: rp.Settings, Journal: a.journal})},
		{
			Name: "ip-forwarding", After: []string{"sysctl"},
			Action: a.host.In(net, sysctl.Settings{Values: sysctl.Forwarding(), Journal: a.journal}),
		},
	}...)
	datapath, err := a.datapathSteps()
	if err != nil {
		return nil, nil, err
	}
	cni, closePlugins, err := a.cniSteps()
	if err != nil {
		return nil, nil, err
	}
	steps = slices.Concat(steps, datapath, cni, a.nodeSteps())
	return &bootstrap.Plan{
		Trace:   bootstrap.LogTrace(a.log),
		Lock:    a.lock(), // keeps a run of nodeinit on the same node and this one apart
		Journal: a.journal,
		Prepare: a.prepare,
		Steps:   steps,
	}, closePlugins, nil
}

func (a *agent) lock() func(context.Context) (func() error, error) {
	return a.host.Lock(flock.File{Owner: a.owner}.Lock)
}

// gateSteps are what is waited for, on the host. They are named as in --gates.
func (a *agent) gateSteps() (steps []bootstrap.Step, err error) {
	if a.clients.config != nil {
		steps = append(steps, a.apiServer())
	}
	for _, spec := range strings.FieldsFunc(a.gates, func(r rune) bool { return r == ',' }) {
		kind, place, _ := strings.Cut(spec, ":")
		var g gate.Gate
		ns := hostns.Net
		switch {
		case spec == "kube-proxy":
			g = gate.KubeProxy()
		case kind == "file":
			g, ns = gate.File(place), hostns.Mount
		case kind == "tcp":
			g = gate.TCP(place)
		default:
			return nil, fmt.Errorf("--gates: %q: want kube-proxy, file:PATH or tcp:ADDRESS", spec)
		}
		g.Timeout = a.gateTimeout
		steps = append(steps, bootstrap.Step{Name: "gate " + spec, Action: a.host.In(ns, g)})
	}
	return steps, nil
}

// prepare reads the configuration, anew for each run, and gives the plan's steps
// what depends on it. What was waited for at the start is not waited for again, and what
// was cleared then is in use by now. A cluster that is away later is no fault of the
// node's: one that was ready stays healthy.
func (a *agent) prepare(ctx context.Context, p *bootstrap.Plan) error {
	for i := range p.Steps {
		p.Steps[i].Skip = a.passed[p.Steps[i].Name]
	}
	if node := p.Step(stepNode); node != nil {
		node.Optional = a.ready
	}
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
	if cni := p.Step(stepCNI); cni != nil {
		if cni.Action, err = a.place(ctx); err != nil {
			return &bootstrap.StepError{Step: stepCNI, Op: "place", Err: err}
		}
	}
	return nil
}

// openJournal opens the node's journal, with what undoes the steps of plan. It is
// on the host, and so is all that it holds.
func (a *agent) openJournal(ctx context.Context) error {
	const mount, net = hostns.Mount, hostns.Mount | hostns.Net
	o := journal.Options{Agent: network, Owner: a.owner, Handlers: []journal.Handler{
		journal.In(a.host.On(mount|hostns.Cgroup), cgroup.Handler{}),
		journal.In(a.host.On(mount), bpffs.Handler{}),
		journal.In(a.host.On(mount), bpfmap.Handler{}),
		journal.In(a.host.On(net), sysctl.Handler{}),
		journal.In(a.host.On(mount), cniinstall.Handler{}),
	}}
	return a.host.Do(ctx, mount, func(context.Context) (err error) {
		a.journal, err = journal.Open(a.stateDir, o)
		return err
	})
}

// done keeps the outcome, for the probe and the next run.
func (a *agent) done(report *bootstrap.Report, err error) {
	a.probe.Done(report, err)
	for _, r := range report.Results {
		ofTheStart := strings.HasPrefix(r.Step, "gate ") || r.Step == stepTemplates
		if ofTheStart && (r.Status == bootstrap.Changed || r.Status == bootstrap.Unchanged) {
			a.passed[r.Step] = true
		}
	}
	if err != nil {
		a.log.Error("the node is not ready", "error", err)
		return
	}
	a.ready = true
}
