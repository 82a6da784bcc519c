// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package preflight looks for conditions that are known to cause failures later, once the
// node is prepared and its agent starts: a kernel without a feature that the agent needs,
// routing tables that others use, a systemd service that deletes the agent's routes.
//
//	step := bootstrap.Step{Name: "preflight", Action: preflight.Checks{
//		{Name: "kernel", Find: preflight.Cilium},
//		{Name: "routing", Find: preflight.Tables(cleanup.Cilium())},
//		{Name: "networkd", Find: preflight.Networkd},
//	}}
//
// [Checks] is a bootstrap.Action and a bootstrap.Gate that changes nothing, for a plan's Steps
// or Gates. Any package may have a check: cniinstall.Install.Findings and kube.Access of
// bootstrap/kube are two more.
//
// # Findings
//
// A finding is an error that names the condition, why it matters and the remedy, and has a
// stable code (bootstrap.Code). One that is bootstrap.Certain is a failure: the
// agent cannot work on this node. All others are warnings: the action's advice, with which
// the plan goes on. Anything that cannot be examined, for example for lack of a
// capability, is a warning too.
//
// # What it needs
//
// [Kernel] needs Linux, and CAP_BPF and CAP_PERFMON, or CAP_SYS_ADMIN, in the
// initial user namespace. The others here read files, and need nothing. Nothing is
// changed on the node, and no goroutine is started.
//
// # When not to use it
//
// Do not use it for conditions that a step's own check reports, such as a missing mount or
// a wrong value. And do not take it for a promise: a node without findings may still fail.
package preflight

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/once"
	"github.com/slipway-dev/slipway/internal/printable"
)

// Check looks for one condition that causes a failure later.
type Check struct {
	// Name is at the start of each line about the check.
	Name string

	// Find returns the findings, which are errors as the package documentation says. The
	// error err says what could not be examined. Find changes nothing.
	Find func(ctx context.Context) (findings []error, err error)
}

// Checks is an action of a plan that looks, and changes nothing. A run of the plan looks
// once.
type Checks []Check

// OnHost has a plan look in the host's mount and network namespaces. A step with checks that
// ask a cluster sets Local instead: it looks in the process's own.
func (Checks) OnHost() (namespaces []string, places map[string]string) {
	return []string{"mnt", "net"}, nil
}

// Check returns no changes, and all findings as the error if one of them is certain to
// fail later.
func (c Checks) Check(ctx context.Context) ([]string, error) { return nil, c.Apply(ctx) }

// Wait returns what Check returns: there is nothing to wait for.
func (c Checks) Wait(ctx context.Context) error { return c.Apply(ctx) }

// Apply returns what Check returns.
func (c Checks) Apply(ctx context.Context) error {
	findings, err := c.look(ctx)
	var certain, others []error
	for _, finding := range findings {
		if errors.Is(finding, failure.ErrCertain) {
			certain = append(certain, finding)
		} else {
			others = append(others, finding)
		}
	}
	if err != nil || len(certain) == 0 {
		return err
	}
	return errors.Join(append(certain, others...)...)
}

// Advise returns the findings, one per line, each with its code at the end. A plan calls
// it if no finding is certain.
func (c Checks) Advise(ctx context.Context) (advice []string, err error) {
	findings, err := c.look(ctx)
	for _, finding := range findings {
		advice = append(advice, fmt.Sprintf("%s (%s)", printable.Line(finding.Error()), bootstrap.Code(finding)))
	}
	return advice, err
}

// looked is the key under which a plan's run keeps the findings.
type looked struct{ list *Check }

// look returns the findings of all checks, with their names.
func (c Checks) look(ctx context.Context) ([]error, error) {
	if len(c) == 0 {
		return c.find(ctx)
	}
	return once.Do(ctx, looked{&c[0]}, c.find)
}

func (c Checks) find(ctx context.Context) (all []error, err error) {
	for _, check := range c {
		if ctx.Err() != nil {
			break
		}
		findings, err := check.Find(ctx)
		if err != nil {
			findings = append(findings, fmt.Errorf("cannot be looked at: %w", err))
		}
		for _, finding := range findings {
			all = append(all, fmt.Errorf("%s: %w", check.Name, finding))
		}
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("look for what fails later: %w", context.Cause(ctx))
	}
	return all, err
}
