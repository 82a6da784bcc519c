// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/sysctl"
)

func (a *app) applyCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "apply", Args: arguments(0),
		Short: "Bring the node to the state that the agent needs",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needsRoot(os.Geteuid(), "apply"); err != nil {
				return err
			}
			return a.runPlan(cmd.Context(), (*bootstrap.Plan).Apply)
		},
	}
	a.planFlags(c)
	return c
}

func (a *app) checkCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "check", Args: arguments(0),
		Short: "Say what apply would change: exit status 0 for nothing, 2 for something",
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.cniWait = 0 // a dry run waits for nothing
			return a.runPlan(cmd.Context(), func(p *bootstrap.Plan, ctx context.Context) (*bootstrap.Report, error) {
				report, err := p.Check(ctx)
				if err == nil {
					a.advise(ctx)
				}
				if err == nil && report.Changed() {
					err = errChanges
				}
				return report, err
			})
		},
	}
	a.planFlags(c)
	return c
}

func (a *app) uninstallCommand() *cobra.Command {
	var dryRun bool
	c := &cobra.Command{
		Use: "uninstall", Args: arguments(0),
		Short: "Take back what apply and the other commands recorded",
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, closeAll, err := a.undoPlan()
			if err != nil {
				return err
			}
			defer closeAll()
			return a.takeBack(cmd, plan, dryRun)
		},
	}
	a.planFlags(c)
	c.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be undone, and change nothing")
	return c
}

// takeBack undoes what the record holds, or says what that would be.
func (a *app) takeBack(cmd *cobra.Command, plan *bootstrap.Plan, dryRun bool) error {
	if a.stateDir == "" {
		return usageError{errors.New("--state-dir is empty: there is no record to undo")}
	}
	if dryRun {
		return a.show(cmd.Context(), plan, a.wouldUndo)
	}
	if err := needsRoot(os.Geteuid(), cmd.Name()); err != nil {
		return err
	}
	return a.show(cmd.Context(), plan, a.undo)
}

func (a *app) planFlags(c *cobra.Command) {
	f := c.Flags()
	a.outputFlag(f)
	a.sourceFlags(f)
	a.cgroupFlags(f)
	a.bpfMountFlags(f)
	a.sysctlFlags(f)
	a.cniFlags(f)
	a.stateFlags(f)
	a.stepFlags(f)
}

// undoPlan is the node's plan without what only an apply needs: what is to be
// undone, the record says.
func (a *app) undoPlan() (*bootstrap.Plan, func() error, error) {
	a.forgetSources()
	plan, closeAll, err := a.nodePlan(nil)
	if err != nil {
		return nil, nil, err
	}
	for i, s := range plan.Steps {
		plan.Steps[i].Skip = a.leftOut(s.Name) || s.Name == stepCleanup
		if s.Name == stepSysctl { // whatever the drop-in was called
			plan.Steps[i].Action = a.onHost(hostns.Mount|hostns.Net, sysctl.Recorded{StateDir: a.stateDir})
		}
	}
	return plan, closeAll, nil
}

// runPlan resolves the configuration, builds the plan from it and runs it.
func (a *app) runPlan(ctx context.Context, run runner) error {
	config, resolveErr := a.resolvePlanConfig(ctx)
	a.resolved = config
	if resolveErr != nil && a.cniConfKey != "" {
		a.cniConfKey, a.cniTemplate = "", cniinstall.ModeNone // for the step to be in the report; nothing is installed
	}
	plan, closeAll, err := a.nodePlan(config)
	if err != nil {
		return err
	}
	defer closeAll()
	if resolveErr != nil {
		return a.show(ctx, plan, func(p *bootstrap.Plan, ctx context.Context) (*bootstrap.Report, error) {
			return p.Fail(ctx, stepConfig, resolveErr)
		})
	}
	return a.show(ctx, plan, run)
}

func (a *app) resolvePlanConfig(ctx context.Context) (*configresolve.Config, error) {
	if len(a.sources) == 0 || a.leftOut(stepConfig) {
		return nil, nil
	}
	return a.resolve(ctx)
}

// advise logs the advice. That it cannot be had is no reason to fail.
func (a *app) advise(ctx context.Context) {
	log := a.logger()
	lines, err := a.advice(ctx)
	for _, line := range lines {
		log.Warn(line)
	}
	if err != nil {
		log.Warn("no advice", "error", oneLine(err.Error()))
	}
}

// runner is one of the plan's methods.
type runner func(*bootstrap.Plan, context.Context) (*bootstrap.Report, error)

// show runs the plan and shows it: as it goes, or in the end as one document.
func (a *app) show(ctx context.Context, plan *bootstrap.Plan, run runner) error {
	if err := a.checkHost(); err != nil {
		return err
	}
	a.shown = true
	if a.output == formatJSON {
		plan.Trace = bootstrap.LogTrace(a.logger())
		report, err := run(plan, ctx)
		return errors.Join(err, report.WriteJSON(a.stdout))
	}
	plan.Trace = newProgress(a.stdout).trace()
	start := time.Now()
	report, err := run(plan, ctx)
	fmt.Fprintf(a.stdout, "%s (%s)\n", report.Summary(), elapsed(time.Since(start)))
	return err
}
