// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package reconcile keeps a node in the state of a plan: it applies the plan at
// once, then again on a timer, whenever it is triggered, and soon after a failure; and it
// repairs within a second what other programs change of files, directories and mounts.
//
//	loop := reconcile.Loop{Plan: plan, Done: func(r *bootstrap.Report, err error) { ... }}
//	err := loop.Run(ctx)
//
// Four times a second it looks at the paths that the last run's steps want, and at those
// that their Wants watch: not at their content, but at file, size, mode, owner and time of
// change. A step whose paths have changed, and look the same at the next look, is repaired:
// it is checked and, if it differs, applied again, as it was prepared last, whatever has
// become of the sources of its configuration meanwhile. What others write without a change of
// size or time, such as by a memory map, is left to the timer, and so are values of the kernel
// and what Local steps want.
//
// If another program undoes each repair, or one fails, the next ones come after growing waits
// of up to a minute. They never end.
//
// Run and the hooks use the goroutine that calls Run, and the plan's Prepare one of its own,
// during which repairs go on; all end when Run returns. It undoes
// nothing: the node is left as it is when the program ends, when the configuration is
// missing (bootstrap.Plan.Prepare failed), and when steps fail.
//
// Run returns once the plan's ledger shows that the node was uninstalled or has another
// owner: in a rolling update, the older process leaves the node to the newer one. The
// package itself needs nothing beyond what the plan's steps need.
//
// Do not use it if a change must be repaired within milliseconds.
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
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

const (
	defaultInterval = 5 * time.Minute
	retry           = time.Second
)

// Loop applies a plan again and again, and repairs what changes in between.
type Loop struct {
	// Plan is the plan to apply. Its Prepare is called for each run, to read the steps'
	// inputs anew. The first run claims the node, unless the plan's ledger is
	// RepairOnly. Each of its Gates is passed only once: later runs skip it.
	Plan *bootstrap.Plan

	// Interval is the longest time from one run to the next. Zero means 5 minutes. After
	// a run that failed it is a second, which doubles with each further failure, up to
	// Interval. Each wait is up to a fifth shorter, at random, so that the nodes of a cluster
	// do not all run at the same time.
	Interval time.Duration

	// Trigger starts the next run at once, even during the wait after a failure. A
	// value that is sent while the plan runs starts another run afterwards: use a
	// channel with a buffer of one, and a send that does not block. If the channel
	// is nil or closed, only the timer and changes of the node start runs.
	Trigger <-chan struct{}

	// Done is called after each run, before the wait for the next one, and after each
	// repair. The report of a repair skips all other steps, and its error includes that of the
	// last run: only a run makes a node well again that failed. A repair that fails in the same
	// way again is not reported, and of a contest with another program only the beginning is an
	// error. Done may be nil.
	Done func(*bootstrap.Report, error)
}

// Run applies the plan until ctx ends, or the node no longer belongs to this process, which
// has applied: neither is an error. If ctx has not ended then, there is nothing to uninstall.
//
// It returns an error if the node belongs to another owner when it begins (ledger.ErrNotOwner),
// if nothing is applied that it could keep (ledger.ErrNotApplied), or if changes would stay in
// this container (hostns.ErrNotHost). No other failure ends it.
func (l Loop) Run(ctx context.Context) error {
	if l.Plan == nil || l.Interval < 0 {
		return errors.New("reconcile: a loop needs a plan, and no negative Interval")
	}
	r := &running{Loop: l, plan: *l.Plan}
	if l.Plan.Ledger != nil {
		r.ledger = []*watched{{places: []string{l.Plan.Ledger.File()}, isApplied: true}}
	}
	if l.Plan.Prepare != nil || slices.ContainsFunc(l.Plan.Steps, func(s bootstrap.Step) bool { return s.Prepare != nil }) {
		r.plan.Prepare = func(within context.Context, p *bootstrap.Plan) error { return r.prepare(ctx, within, p) }
	}
	for failures := 0; ; {
		report, err := r.plan.Apply(ctx)
		if ctx.Err() != nil || errors.Is(err, ledger.ErrRevoked) {
			return nil
		}
		r.failed = err
		r.callDone(report, nil)
		switch {
		case errors.Is(err, ledger.ErrNotOwner), errors.Is(err, ledger.ErrNotApplied), errors.Is(err, hostns.ErrNotHost):
			return fmt.Errorf("reconcile: %w", err)
		case err != nil:
			failures++
		default:
			failures = 0
		}
		r.plan.Gates = passed(r.plan.Gates, report)
		r.watchSteps(report)
		if r.wait(ctx, l.pause(failures)) {
			return nil
		}
	}
}

// passed returns the gates, with those already passed marked as skipped.
func passed(gates []bootstrap.Step, report *bootstrap.Report) []bootstrap.Step {
	gates = slices.Clone(gates)
	for i := range gates {
		if status := resultOf(report, gates[i].Name).Status; status == bootstrap.Changed || status == bootstrap.Unchanged {
			gates[i].Skip = "passed in an earlier run"
		}
	}
	return gates
}

func resultOf(report *bootstrap.Report, step string) (result bootstrap.Result) {
	for _, r := range report.Results {
		if r.Step == step {
			result = r
		}
	}
	return result
}

// pause is how long to wait after this many failures in a row.
func (l Loop) pause(failures int) time.Duration {
	longest := cmp.Or(l.Interval, defaultInterval)
	if failures > 0 {
		longest = growing(retry, failures-1, longest)
	}
	return longest - rand.N(longest/5+1)
}

// growing doubles a wait that often, up to a limit.
func growing(wait time.Duration, often int, limit time.Duration) time.Duration {
	for ; often > 0 && wait < limit; often-- {
		wait *= 2
	}
	return min(wait, limit)
}
