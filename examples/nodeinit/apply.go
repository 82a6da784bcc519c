// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/configresolve"
)

func (a *app) apply(cmd *cobra.Command, _ []string) error {
	return a.reporting(cmd, "apply", a.stepsToRun(), func() error { return a.runPlan(cmd.Context(), (*bootstrap.Plan).Apply) })
}

func (a *app) check(cmd *cobra.Command, _ []string) error {
	if a.every > 0 {
		return a.checkEvery(cmd.Context())
	}
	a.cniWait, a.preflight = 0, true // a dry run waits for nothing
	return a.reporting(cmd, "check", append([]string{stepPreflight}, a.stepsToRun()...), func() error { return a.runPlan(cmd.Context(), checkPlan) })
}

// checkPlan is the runner of check.
func checkPlan(p *bootstrap.Plan, ctx context.Context) (*bootstrap.Report, error) {
	return dry(p.Check(ctx))
}

// dry is the result of a dry run, shown by its exit status.
func dry(report *bootstrap.Report, err error) (*bootstrap.Report, error) {
	if err == nil && report.Changed() {
		err = errChanges
	}
	return report, err
}

// runPlan resolves the configuration, builds the plan from it and runs it.
func (a *app) runPlan(ctx context.Context, run runner) error {
	plan, err := a.resolvedPlan(ctx)
	if err != nil {
		return err
	}
	return a.showPlan(ctx, plan, run)
}

func (a *app) resolvedPlan(ctx context.Context) (*bootstrap.Plan, error) {
	config, resolveErr := a.resolvePlanConfig(ctx)
	if resolveErr != nil && ctx.Err() != nil {
		return nil, unresolved(resolveErr) // the host would not be asked any more
	}
	if err := a.openBook(ctx); err != nil {
		return nil, err
	}
	if resolveErr == nil || bootstrap.Code(resolveErr) == forbidden {
		a.access = a.askAccess(ctx, config)
	}
	if resolveErr != nil {
		return nil, unresolved(errors.Join(append([]error{resolveErr}, a.access.findings...)...)) // whatever else is denied
	}
	return a.nodePlan(ctx, config)
}

// unresolved is the error of the config step, which blocks the others.
func unresolved(err error) error {
	return &bootstrap.StepError{Step: stepConfig, Op: "resolve", Err: err}
}

func (a *app) resolvePlanConfig(ctx context.Context) (*configresolve.Config, error) {
	isNeeded := !a.leftOut(stepConfig) || a.cniConfKey != "" && !a.leftOut(stepCNI)
	if len(a.sources) == 0 || !isNeeded {
		return nil, nil
	}
	config, err := a.resolve(ctx)
	if err == nil && a.cgroupRootKey != "" {
		err = a.cgroupRootFrom(config)
	}
	return config, err
}

// cgroupRootFrom takes the place of cgroup2 from the configuration, as the agent does,
// which attaches its programs there. A user who may annotate a Node cannot mount anything
// that way.
func (a *app) cgroupRootFrom(config *configresolve.Config) error {
	entry := config.Explain(a.cgroupRootKey).Keys[0]
	root := interpreted(config, a.cgroupRootKey)
	switch {
	case root == "":
		return nil
	case entry.Source.Kind == "node":
		a.logger().Warn(bootstrap.OneLine(fmt.Sprintf("ignored: %s = %s from %s: a Node must not choose a mount point", a.cgroupRootKey, root, entry.Source)), "step", stepCgroup)
		return nil
	case !path.IsAbs(root):
		return fmt.Errorf("--cgroup-root-key: the value of %s is %q, which is no absolute path", a.cgroupRootKey, root)
	}
	a.cgroupRoot = root
	return nil
}

// interpreted returns the value of a key that this program itself interprets: a ConfigMap
// made of files has a newline at the end of each.
func interpreted(config *configresolve.Config, key string) string {
	value, _ := config.Lookup(key)
	return strings.TrimSpace(value)
}

// runner is one of the plan's methods.
type runner func(*bootstrap.Plan, context.Context) (*bootstrap.Report, error)

// showPlan runs the plan and shows it, as it goes or at the end as one document. An error of
// showing it counts more than that there is something to do.
func (a *app) showPlan(ctx context.Context, plan *bootstrap.Plan, run runner) error {
	a.shown = true
	trace := bootstrap.JoinTraces(a.progress(), a.waits())
	if a.output == formatJSON {
		trace = bootstrap.LogTrace(a.logger())
		logged := trace.StepDone
		trace.StepDone = func(ctx context.Context, op string, r bootstrap.Result) {
			if r.Status != bootstrap.Failed || r.Excused { // else the run ends with its error
				logged(ctx, op, r)
			}
		}
	}
	if a.timelineFile != "" {
		trace = bootstrap.JoinTraces(a.timeline.Trace(), trace)
	}
	plan.Trace = a.noting(plan, trace)
	report, err := run(plan, ctx)
	a.ran = report
	showing := a.drawTimeline()
	if a.output == formatJSON {
		showing = errors.Join(showing, a.writeJSON(report))
	}
	if showing != nil && errors.Is(err, errChanges) {
		return showing
	}
	return errors.Join(err, showing)
}

// checkEvery checks until it is asked to end, and prints what has changed since the last check.
// Each is a process of its own, as if a person had called it: between two there is next to
// nothing in memory, and one that hangs in the kernel is left behind by its own --timeout.
func (a *app) checkEvery(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("--every: %w", err)
	}
	ignored := strings.Join(append(slices.Clone(a.ignorePreflight), checkAccess), ",") // a thousand nodes ask for no more than they report
	var reported, warned lastSaid
	for {
		var stdout, stderr strings.Builder
		look := exec.CommandContext(ctx, self, append(os.Args[1:], "--every=0", "--ignore-preflight="+ignored)...)
		look.Stdout, look.Stderr = &stdout, &stderr
		look.Cancel = func() error { return look.Process.Signal(os.Interrupt) }
		look.WaitDelay = 2 * grace
		if err := look.Run(); err != nil && look.ProcessState == nil {
			return fmt.Errorf("--every: %w", err)
		}
		if ctx.Err() != nil {
			return nil // what an interrupted check says is no news
		}
		if look.ProcessState.ExitCode() == exitUsage {
			fmt.Fprint(a.stderr, &stderr)
			return usage("--every: usage error, see above")
		}
		news, warnings := reported.news(stdout.String(), a.output == formatJSON || a.diff), warned.news(stderr.String(), false)
		if news+warnings != "" && a.output == formatText {
			fmt.Fprintln(a.stdout, time.Now().UTC().Format(time.RFC3339))
		}
		fmt.Fprint(a.stdout, news)
		fmt.Fprint(a.stderr, warnings)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(a.every - rand.N(a.every/5+1)):
		}
	}
}
