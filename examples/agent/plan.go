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
	"github.com/slipway-dev/slipway/bootstrap/gate"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/sysctl"
)

func (a *agent) sourceList() ([]configresolve.Source, error) {
	specs, err := configresolve.ParseSpecs(strings.Split(a.sources, ","), configresolve.Ref{}, "")
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

// plan returns the preparation that this agent needs on a node, in the order of its steps.
func (a *agent) plan() (plan *bootstrap.Plan, closePlugins func(), err error) {
	rp := sysctl.Cilium() // the reverse path filter off
	gates, err := a.gateSteps()
	if err != nil {
		return nil, nil, err
	}
	steps := []bootstrap.Step{
		{Name: "config", Local: true, Wants: configdir.Writer{Path: a.dest}}, // prepare adds what to write
		{Name: "cgroup", Wants: cgroup.Mount{Path: "/run/cilium/cgroupv2"}},
		{Name: "bpffs", Wants: bpffs.Mount{}},
		{Name: "sysctl", Wants: rp},
		{Name: "ip-forwarding", After: []string{"sysctl"}, Wants: sysctl.Settings{Values: sysctl.Forwarding()}},
	}
	datapath, err := a.datapathSteps()
	if err != nil {
		return nil, nil, err
	}
	cni, closePlugins, err := a.cniSteps()
	if err != nil {
		return nil, nil, err
	}
	return &bootstrap.Plan{
		Host:    a.host,
		Ledger:  &ledger.Ledger{Dir: a.stateDir, Agent: network, Owner: a.owner, NoOwner: a.owner == ""},
		Gates:   gates,
		Steps:   slices.Concat(steps, datapath, a.accessSteps(), cni, a.nodeSteps()),
		Prepare: a.prepare,
		Trace:   bootstrap.LogTrace(a.log),
	}, closePlugins, nil
}

// base are the steps without which no pod may come.
func (a *agent) base() []string {
	names := []string{"config", "cgroup", "bpffs", "ip-forwarding"}
	if a.cluster.pluginKubeconfig != "" {
		names = append(names, stepAccess)
	}
	return names
}

// gateSteps are the steps that wait, on the host. Their names are those in --gates.
func (a *agent) gateSteps() (steps []bootstrap.Step, err error) {
	if a.clients.config != nil {
		steps = append(steps, a.apiServer(), a.mayMark())
	}
	for _, spec := range strings.FieldsFunc(a.gates, func(r rune) bool { return r == ',' }) {
		kind, place, _ := strings.Cut(spec, ":")
		var g gate.Gate
		switch {
		case spec == "kube-proxy":
			g = gate.KubeProxy()
		case kind == "file":
			g = gate.File(place)
		case kind == "tcp":
			g = gate.TCP(place)
		default:
			return nil, fmt.Errorf("--gates: %q: want kube-proxy, file:PATH or tcp:ADDRESS", spec)
		}
		g.Timeout = a.gateTimeout
		steps = append(steps, bootstrap.Step{Name: "gate " + spec, Gate: g})
	}
	return steps, nil
}

// prepare reads the configuration for each run, and sets the steps' fields that depend on it.
// State removed at the start is in use by now. A cluster that is unreachable later is no fault
// of the node: a node that was ready stays healthy.
func (a *agent) prepare(ctx context.Context, p *bootstrap.Plan) error {
	if templates := p.Step(stepTemplates); templates != nil && a.cleared {
		templates.Skip = "those of this start are in use"
	}
	if node := p.Step(stepNode); node != nil {
		node.Optional = a.ready
	}
	config, err := a.resolve(ctx)
	if err != nil {
		return &bootstrap.StepError{Step: "config", Op: "resolve", Err: err}
	}
	p.Step("config").Wants = configdir.Writer{Path: a.dest, Config: config}
	var settings struct {
		Forwarding bool `config:"enable-ip-forwarding"`
	}
	settings.Forwarding = true
	if err := configresolve.Decode(config, &settings); err != nil {
		return &bootstrap.StepError{Step: "config", Op: "decode", Err: err}
	}
	p.Step("ip-forwarding").Absent = !settings.Forwarding
	return nil
}

// done keeps the report, for the probe and the next run.
func (a *agent) done(report *bootstrap.Report, err error) {
	a.probe.Done(report, err)
	for _, r := range report.Results {
		if r.Step == stepTemplates && (r.Status == bootstrap.Changed || r.Status == bootstrap.Unchanged) {
			a.cleared = true
		}
	}
	if err != nil {
		a.log.Error("the node is not ready", "error", err)
		return
	}
	a.ready = true
}
