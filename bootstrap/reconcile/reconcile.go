// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package reconcile keeps a node in the state of a plan: it applies the plan at
// once, then again on a timer, whenever it is triggered, and soon after a failure.
//
//	loop := reconcile.Loop{Plan: plan, Done: func(r *bootstrap.Report, err error) { ... }}
//	err := loop.Run(ctx)
//
// Everything runs on the goroutine that calls Run, and ends when Run returns. It undoes
// nothing: the node is left as it is when the program ends, when the configuration is
// missing (bootstrap.Plan.Prepare failed), and when steps fail.
//
// Run returns once the plan's ledger shows that the node was uninstalled or has another
// owner: in a rolling update, the older process leaves the node to the newer one. The
// package itself needs nothing beyond what the plan's steps need.
//
// Do not use it if a change must be repaired within milliseconds: a timer only notices it
// at the next run. For a CNI configuration that others overwrite, use cniinstall.Guard.
package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

const (
	defaultInterval = 5 * time.Minute
	retry           = time.Second
)

// Loop applies a plan again and again.
type Loop struct {
	// Plan is the plan to apply. Its Prepare is called for each run, to read the steps'
	// inputs anew. The first run claims the node. Each of its Gates is passed only once:
	// later runs skip it.
	Plan *bootstrap.Plan

	// Interval is the longest time from one run to the next. Zero means 5 minutes. After
	// a run that failed it is a second, which doubles with each further failure, up to
	// Interval. Each wait is up to a fifth shorter, at random, so that the nodes of a cluster
	// do not all run at the same time.
	Interval time.Duration

	// Trigger starts the next run at once, even during the wait after a failure. A
	// value that is sent while the plan runs starts another run afterwards: use a
	// channel with a buffer of one, and a send that does not block. If the channel
	// is nil or closed, only the timer starts runs.
	Trigger <-chan struct{}

	// Done is called after each run, before the wait for the next one. It may be
	// nil.
	Done func(*bootstrap.Report, error)
}

// Run applies the plan until ctx ends, and then returns the error of ctx. If the
// node no longer belongs to this process, it returns an error that matches
// ledger.ErrRevoked or ledger.ErrNotOwner.
func (l Loop) Run(ctx context.Context) error {
	if l.Plan == nil || l.Interval < 0 {
		return errors.New("reconcile: a loop needs a plan, and no negative Interval")
	}
	plan, trigger, failures := *l.Plan, l.Trigger, 0
	for {
		report, err := plan.Apply(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("reconcile: %w", context.Cause(ctx))
		}
		if l.Done != nil {
			l.Done(report, err)
		}
		switch {
		case errors.Is(err, ledger.ErrRevoked), errors.Is(err, ledger.ErrNotOwner):
			return fmt.Errorf("reconcile: %w", err)
		case err != nil:
			failures++
		default:
			failures = 0
		}
		plan.Gates = passed(plan.Gates, report)
		if trigger, err = wait(ctx, l.pause(failures), trigger); err != nil {
			return err
		}
	}
}

// passed returns the gates, with those already passed marked as skipped.
func passed(gates []bootstrap.Step, report *bootstrap.Report) []bootstrap.Step {
	gates = slices.Clone(gates)
	for i := range gates {
		if slices.ContainsFunc(report.Results, func(r bootstrap.Result) bool {
			return r.Step == gates[i].Name && (r.Status == bootstrap.Changed || r.Status == bootstrap.Unchanged)
		}) {
			gates[i].Skip = "passed in an earlier run"
		}
	}
	return gates
}

// pause is how long to wait after this many failures in a row.
func (l Loop) pause(failures int) time.Duration {
	interval := cmp.Or(l.Interval, defaultInterval)
	longest := interval
	if failures > 0 {
		longest = retry
		for ; failures > 1 && longest < interval; failures-- {
			longest *= 2
		}
		longest = min(longest, interval)
	}
	return longest - rand.N(longest/5+1)
}

// wait returns the trigger, or nil once that is closed.
func wait(ctx context.Context, pause time.Duration, trigger <-chan struct{}) (<-chan struct{}, error) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("reconcile: %w", context.Cause(ctx))
		case <-timer.C:
			return trigger, nil
		case _, open := <-trigger:
			if open {
				return trigger, nil
			}
			trigger = nil
		}
	}
}
