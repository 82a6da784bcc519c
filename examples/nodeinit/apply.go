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

func (a *app) applyCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "apply", Args: arguments(0),
		Short: "Bring the node to the state that the agent needs",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.reporting(cmd, "apply", a.stepsToRun(), func() error { return a.runPlan(cmd.Context(), (*bootstrap.Plan).Apply) })
		},
	}
	a.planFlags(c)
	return c
}

func (a *app) checkCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "check", Args: arguments(0),
		Short: "Print what apply would change; exit status 0 if nothing, 2 if something",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.every > 0 {
				return a.checkEvery(cmd.Context())
			}
			a.cniWait, a.preflight = 0, true // a dry run waits for nothing
			return a.reporting(cmd, "check", append([]string{stepPreflight}, a.stepsToRun()...), func() error { return a.runPlan(cmd.Context(), checkPlan) })
		},
	}
	a.planFlags(c)
	c.Flags().DurationVar(&a.every, flagEvery, 0, "keep checking at about this interval, at most a fifth shorter, until asked to end; --timeout bounds each check, and --report-node and --report-metrics report it; 0: check once")
	c.Flags().StringSliceVar(&a.ignorePreflight, "ignore-preflight", nil, "checks to leave out, of those for conditions known to fail later: "+strings.Join(preflightNames, ", "))
	return c
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

func (a *app) planFlags(c *cobra.Command) {
	f := c.Flags()
	a.reportFlags(f)
	a.sourceFlags(f)
	a.cgroupFlags(f)
	f.StringVar(&a.cgroupRootKey, "cgroup-root-key", "", "key of the resolved configuration whose value, if set, replaces --cgroup-root, for agents that read their cgroup root there")
	a.bpfMountFlags(f)
	f.StringSliceVar(&a.modules, "kernel-modules", nil, "kernel modules that the agent needs; those that are neither built in nor loaded are loaded by the host's modprobe (needs SYS_MODULE), and stay")
	a.sysctlFlags(f)
	f.DurationVar(&a.kubeProxyWait, "wait-for-kube-proxy", 0, "how long to wait until kube-proxy has written its rules, in nf_tables or legacy iptables, unless the configuration makes the agent replace kube-proxy (needs NET_ADMIN); 0: do not wait")
	a.cniFlags(f)
	a.stateFlags(f)
	f.StringSliceVar(&a.skip, "skip", nil, "steps to leave out")
	f.StringSliceVar(&a.only, "only", nil, "run only these steps")
	f.BoolVar(&a.reportNode, "report-node", false, "report the result to the cluster: by a condition and an annotation of the Node, sent when they change, and an Event for each new failure (needs get on nodes, patch on nodes/status, and create on events in the namespace default); a failure to report is a warning")
	f.StringVar(&a.reportMetrics, "report-metrics", "", "also write the result into this file, on the host, for node_exporter's textfile collector: a .prom; each agent has its own")
}

// runPlan resolves the configuration, builds the plan from it and runs it.
func (a *app) runPlan(ctx context.Context, run runner) error {
	config, resolveErr := a.resolvePlanConfig(ctx)
	if resolveErr != nil && ctx.Err() != nil {
		return unresolved(resolveErr) // the host would not be asked any more
	}
	if err := a.openBook(ctx); err != nil {
		return err
	}
	if resolveErr == nil || bootstrap.Code(resolveErr) == forbidden {
		a.access = a.askAccess(ctx, config)
	}
	if resolveErr != nil {
		return unresolved(errors.Join(append([]error{resolveErr}, a.access.findings...)...)) // whatever else is denied
	}
	plan, err := a.nodePlan(ctx, config)
	if err != nil {
		return err
	}
	return a.showPlan(ctx, plan, run)
}

// unresolved is the error of the config step, which blocks the others.
func unresolved(err error) error {
	return &bootstrap.StepError{Step: stepConfig, Op: "resolve", Err: err}
}

func (a *app) resolvePlanConfig(ctx context.Context) (*configresolve.Config, error) {
	if len(a.sources) == 0 || a.leftOut(stepConfig) {
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

// showPlan runs the plan and shows it.
func (a *app) showPlan(ctx context.Context, plan *bootstrap.Plan, run runner) error {
	return a.show(ctx, func(ctx context.Context) (*bootstrap.Report, error) {
		plan.Trace, a.planned = a.trace, nil
		for _, s := range slices.Concat(plan.Gates, plan.Steps) {
			a.planned = append(a.planned, s.Name)
		}
		return run(plan, ctx)
	})
}

// show shows the reports of run: by a.trace as it goes, or at the end as one document.
func (a *app) show(ctx context.Context, run func(context.Context) (*bootstrap.Report, error)) error {
	a.shown = true
	if a.output == formatJSON {
		a.trace = a.noting(bootstrap.JoinTraces(a.timeline.trace(), bootstrap.LogTrace(a.logger())))
		report, err := run(ctx)
		a.ran = report
		return withShowing(err, errors.Join(a.writeJSON(report), a.timeline.save()))
	}
	a.trace = a.noting(bootstrap.JoinTraces(a.timeline.trace(), (&progress{a.stdout, a.terminal}).trace(), a.waits()))
	start := time.Now()
	report, err := run(ctx)
	a.ran = report
	whose := ""
	if report.Agent != "" && report.Owner == "" {
		whose = ", for no owner"
	}
	if len(report.Results) > 0 && report.Count(bootstrap.Skipped) == len(report.Results) {
		whose += ": nothing is done"
	}
	fmt.Fprintf(a.stdout, "%s (%s)%s\n", report.Summary(), elapsed(time.Since(start)), whose)
	return withShowing(err, a.timeline.save())
}

// withShowing is the error of a run, and that of showing it, which counts more than that
// there is something to do.
func withShowing(err, showing error) error {
	switch {
	case showing == nil:
		return err
	case errors.Is(err, errChanges):
		return showing
	}
	return errors.Join(err, showing)
}

const flagEvery = "every"

// checkEvery checks until it is asked to end. Each check is a process of its own, as if a
// person had called it: between two there is next to nothing in memory, and one that
// hangs in the kernel is left behind by its own --timeout.
func (a *app) checkEvery(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("--%s: %w", flagEvery, err)
	}
	ignored := strings.Join(append(slices.Clone(a.ignorePreflight), checkAccess), ",") // a thousand nodes ask for no more than they report
	for {
		look := exec.CommandContext(ctx, self, append(os.Args[1:], "--"+flagEvery+"=0", "--ignore-preflight="+ignored)...)
		look.Stdout, look.Stderr = os.Stdout, os.Stderr
		look.Cancel = func() error { return look.Process.Signal(os.Interrupt) }
		look.WaitDelay = 2 * grace
		if err := look.Run(); err != nil && look.ProcessState == nil {
			return fmt.Errorf("--%s: %w", flagEvery, err)
		}
		if look.ProcessState.ExitCode() == exitUsage {
			return usageError{fmt.Errorf("--%s: usage error, see above", flagEvery)}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(a.every - rand.N(a.every/5+1)):
		}
	}
}
