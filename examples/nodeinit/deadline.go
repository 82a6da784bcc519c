// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
)

// grace is how long a command may take to end after it was asked to. The packages end with
// their context between two system calls, but no program can interrupt a system call that
// waits for a disk or a server that does not answer. This process can end itself. It then
// leaves the node as after a kill, which the next run repairs.
const grace = time.Second

// untilTold returns a context that ends with the first signal to end. With the
// second the process ends, whatever it is doing, until the function is called.
func (a *app) untilTold() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, toEnd()...)
	go func() {
		cancel(fmt.Errorf("asked to end by a signal, %v: %w", <-signals, context.Canceled))
		<-signals
		if a.ends.Load() {
			a.giveUp(errors.New("asked to end a second time"))
		}
	}()
	return ctx, func() { signal.Stop(signals) }
}

// toEnd are the signals that ask the process to end. One says that its terminal has gone,
// and is ignored if the process was started to outlive it.
func toEnd() []os.Signal {
	if signal.Ignored(syscall.SIGHUP) {
		return []os.Signal{os.Interrupt, syscall.SIGTERM}
	}
	return []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
}

// endWith makes the process end soon after ctx, until stop is called.
func (a *app) endWith(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		time.Sleep(grace)
		if a.ends.Load() {
			a.giveUp(fmt.Errorf("%w, and %v later something has not ended by itself", context.Cause(ctx), grace))
		}
	})
}

// giveUp reports why, if it has a reader, and ends the process.
func (a *app) giveUp(why error) {
	if a.gaveUp.Swap(true) {
		return // it is being reported
	}
	said := make(chan struct{})
	go func() {
		defer close(said)
		report, err := a.at.unfinished("wait", why)
		a.printError(fmt.Errorf("given up: %w", err))
		if a.output == formatJSON {
			_ = a.writeJSON(report) // it ends with an error anyway
		} else if report.Op != "" {
			fmt.Fprintln(a.stdout, report)
		}
	}()
	select {
	case <-said:
	case <-time.After(grace / 4):
	}
	os.Exit(exitError)
}

// noting is trace, and remembers the step in progress, and the finished ones.
func (a *app) noting(plan *bootstrap.Plan, trace *bootstrap.Trace) *bootstrap.Trace {
	var steps []string
	for _, s := range slices.Concat(plan.Gates, plan.Steps) {
		steps = append(steps, s.Name)
	}
	return bootstrap.JoinTraces(trace, &bootstrap.Trace{
		PlanStart: func(ctx context.Context, op string) context.Context { a.begins(op, steps); return ctx },
		Checking:  func(_ context.Context, step string) { a.at.work(step, "") },
		StepStart: func(ctx context.Context, _, step string) context.Context { a.at.work(step, ""); return ctx },
		StepDone:  func(_ context.Context, _ string, r bootstrap.Result) { a.at.finish(r) },
	})
}

// begins remembers a run, and the steps that it is to have.
func (a *app) begins(op string, steps []string) {
	run := bootstrap.Report{Op: op, Start: time.Now(), Node: a.nodeName, Version: version(), Command: a.name}
	if a.stateDir != "" {
		run.Agent, run.Owner = a.agent, a.owner
	}
	a.at.mu.Lock()
	defer a.at.mu.Unlock()
	a.at.run, a.at.steps = run, steps
}

// position is the progress of a run, in case it does not end by itself.
type position struct {
	mu         sync.Mutex
	step, what string           // in progress
	run        bootstrap.Report // with the finished steps
	steps      []string         // all of the plan, in their order
}

func (p *position) work(step, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step, p.what = step, what
}

// using calls use, which may take long or fail because of the value of a flag: that of the
// field, whose name its error gets.
func (a *app) using(step string, field any, use func() error) error {
	f := a.rows()[slices.IndexFunc(a.rows(), func(f *flag) bool { return f.to == field })]
	a.at.work(step, "--"+f.name+" "+f.String())
	err := use()
	a.at.work(step, "")
	if err != nil {
		return fmt.Errorf("--%s: %w", f.name, err)
	}
	return nil
}

func (p *position) finish(r bootstrap.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run.Results = append(p.run.Results, r)
}

// unfinished is the report of the finished steps, of the unfinished one, whose error it
// returns too, and of those that did not run.
func (p *position) unfinished(op string, why error) (*bootstrap.Report, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.what != "" {
		why = fmt.Errorf("%w (at %s)", why, p.what)
	}
	if p.step != "" {
		why = &bootstrap.StepError{Step: p.step, Op: op, Err: why}
	}
	report := p.run
	report.Results = slices.Clone(p.run.Results)
	if p.step != "" {
		report.Results = append(report.Results, bootstrap.Result{Step: p.step, Status: bootstrap.Failed, Err: why})
	} else {
		report.Err = why
	}
	if !report.Start.IsZero() {
		report.Elapsed = time.Since(report.Start)
	}
	for _, step := range p.steps {
		if !slices.ContainsFunc(report.Results, func(r bootstrap.Result) bool { return r.Step == step }) {
			report.Results = append(report.Results, bootstrap.Result{Step: step, Status: bootstrap.NotRun, Reason: "the run ended before it"})
		}
	}
	return &report, why
}
