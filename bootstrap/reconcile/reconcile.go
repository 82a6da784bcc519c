// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package reconcile keeps a node in the state of a plan: it applies the plan
// now, again and again on a timer, at once when something asks for it, and soon
// after a failure.
//
//	loop := reconcile.Loop{Plan: plan, Done: func(r *bootstrap.Report, err error) { ... }}
//	err := loop.Run(ctx)
//
// Everything runs on the goroutine that calls Run, and nothing is left behind
// when it returns. It undoes nothing: a node stays as it is when the program
// ends, when its configuration is missing (bootstrap.Plan.Prepare failed), and
// when steps fail.
//
// It ends where the plan's journal says that the node is somebody else's by now
// or was uninstalled: in a rolling update the older process leaves the node to
// the newer. It needs what the plan's steps need.
//
// Do not use it to watch what changes within milliseconds: a timer looks, it is
// not told. For a CNI configuration that others overwrite there is
// cniinstall.Guard.
package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

const (
	defaultInterval = 5 * time.Minute
	defaultRetry    = time.Second
)

// Loop applies a plan again and again.
type Loop struct {
	// Plan is what is applied. Its Prepare reads what the steps depend on, anew
	// for each run.
	Plan *bootstrap.Plan

	// Interval is the longest time from one run to the next. Zero: 5 minutes.
	// Each wait is up to a fifth shorter, at random, so that the nodes of a
	// cluster do not keep in step.
	Interval time.Duration

	// Retry is the longest wait after a run that failed. It doubles with each
	// further failure, up to Interval. Zero: a second.
	Retry time.Duration

	// Trigger starts a run at once, also one that waits after a failure. What
	// comes while the plan runs starts another run after it: make it a channel
	// with room for one, and send without waiting. Closed, or nil: only the timer
	// does.
	Trigger <-chan struct{}

	// Done is told of each run, before the wait for the next. Nil: nobody is.
	Done func(*bootstrap.Report, error)
}

// Run applies the plan until ctx ends, and returns its error; or until the node
// is no longer this process's, with an error that matches journal.ErrRevoked or
// journal.ErrNotOwner.
func (l Loop) Run(ctx context.Context) error {
	if l.Plan == nil || l.Interval < 0 || l.Retry < 0 {
		return errors.New("reconcile: a loop needs a plan, and neither a negative Interval nor a negative Retry")
	}
	trigger, failures := l.Trigger, 0
	for {
		report, err := l.Plan.Apply(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("reconcile: %w", context.Cause(ctx))
		}
		if l.Done != nil {
			l.Done(report, err)
		}
		switch {
		case errors.Is(err, journal.ErrRevoked), errors.Is(err, journal.ErrNotOwner):
			return fmt.Errorf("reconcile: %w", err)
		case err != nil:
			failures++
		default:
			failures = 0
		}
		if trigger, err = wait(ctx, l.pause(failures), trigger); err != nil {
			return err
		}
	}
}

// pause is how long to wait after so many failures in a row.
func (l Loop) pause(failures int) time.Duration {
	interval := cmp.Or(l.Interval, defaultInterval)
	longest := interval
	if failures > 0 {
		longest = cmp.Or(l.Retry, defaultRetry)
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
