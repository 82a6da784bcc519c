// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

func TestPLAN1_SecondApplyChangesNothing(t *testing.T) {
	a, b := todo(), todo()
	plan := &bootstrap.Plan{Steps: []bootstrap.Step{step("a", a), step("b", b, "a")}}

	report, err := plan.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines("a changed", "b changed"), statuses(report))
	require.True(t, report.Changed())
	require.Equal(t, []string{"check", "check", "apply", "check"}, a.Calls())

	report, err = plan.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines("a unchanged", "b unchanged"), statuses(report))
	require.False(t, report.Changed())
	require.Equal(t, []string{"check", "check", "apply", "check", "check"}, a.Calls(), "Apply is not called again")
}

func TestApplyStopsAtRequiredFailure(t *testing.T) {
	d, e := todo(), todo()
	plan := &bootstrap.Plan{Steps: []bootstrap.Step{
		step("a", todo()),
		step("b", broken()),
		step("c", todo(), "b"),
		step("d", d, "c"),
		step("e", e, "a"),
	}}
	report, err := plan.Apply(t.Context())
	require.Equal(t, lines("a changed", "b failed", "c blocked", "d blocked", "e not-run"), statuses(report))
	require.EqualError(t, err, "step b: apply: boom")
	require.ErrorIs(t, err, errBoom)
	var failure *bootstrap.StepError
	require.ErrorAs(t, err, &failure)
	require.Equal(t, "b", failure.Step)
	require.Equal(t, "apply", failure.Op)
	require.EqualError(t, report.Results[3].Err, "it comes after step b, which failed")
	require.Empty(t, report.Results[1].Changes, "the change is still listed")
	require.NotContains(t, d.Calls(), "apply")
	require.NotContains(t, e.Calls(), "apply")
}

// halfway is an action whose Apply leaves something to do.
type halfway struct {
	before, after []string
	afterErr, err error // of the checks after Apply, and of Apply
	isApplied     bool
}

func (h *halfway) Check(context.Context) ([]string, error) {
	if !h.isApplied {
		return h.before, nil
	}
	return h.after, h.afterErr
}

func (h *halfway) Apply(context.Context) error { h.isApplied = true; return h.err }

func TestAFailedStepTellsWhatItChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		left    []string
		err     error
		changed []string
	}{
		"one failed":      {[]string{"remove b"}, nil, []string{"remove a", "remove c"}},
		"all failed":      {[]string{"remove a", "remove b", "remove c"}, nil, nil},
		"nothing is left": {nil, nil, []string{"remove a", "remove b", "remove c"}},
		"something else":  {[]string{"remove half of a"}, nil, nil},
		"cannot be told":  {nil, errBoom, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := &halfway{before: []string{"remove a", "remove b", "remove c"}, after: tc.left, afterErr: tc.err, err: errBoom}
			report, err := (&bootstrap.Plan{Steps: []bootstrap.Step{step("cleanup", a)}}).Apply(t.Context())
			require.ErrorIs(t, err, errBoom)
			require.Equal(t, strings.Join(tc.changed, "\n"), strings.Join(report.Results[0].Changes, "\n"))
		})
	}
}

func TestPLAN9_SkipSatisfiesAfter(t *testing.T) {
	a := todo()
	plan := &bootstrap.Plan{Steps: []bootstrap.Step{skipped(step("a", a)), step("b", todo(), "a")}}
	report, err := plan.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines("a skipped", "b changed"), statuses(report))
	require.Empty(t, a.Calls())

	plan = &bootstrap.Plan{Steps: []bootstrap.Step{
		optional(step("a", broken())), skipped(step("b", nil, "a")), step("c", todo(), "b"),
	}}
	report, err = plan.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines("a failed", "b skipped", "c blocked"), statuses(report), "a barrier holds through a skipped step")
}

func TestPLAN9_CheckAfterPendingChange(t *testing.T) {
	plan := &bootstrap.Plan{Steps: []bootstrap.Step{
		step("a", todo()),
		skipped(step("b", nil, "a")),
		step("c", unreadable(), "b"),
		step("d", unreadable(), "c"),
		step("e", &bootstraptest.Script{}, "c"),
	}}
	report, err := plan.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines("a would-change", "b skipped", "c unknown", "d unknown", "e unchanged"), statuses(report))
	require.EqualError(t, report.Results[2].Err, "step c: check: boom")
	require.True(t, report.Changed())
}

func TestCheckLooksAtEveryStep(t *testing.T) {
	last := todo()
	plan := &bootstrap.Plan{Steps: []bootstrap.Step{
		step("a", unreadable()),
		step("b", todo(), "a"),
		optional(step("c", unreadable())),
		step("d", unreadable()),
		step("e", last),
	}}
	report, err := plan.Check(t.Context())
	require.Equal(t, lines("a failed", "b blocked", "c failed", "d failed", "e would-change"), statuses(report))
	require.EqualError(t, err, "step a: check: boom\nstep d: check: boom", "not c, which is optional")
	require.Equal(t, []string{"check"}, last.Calls())
}

func TestApplyVerifies(t *testing.T) {
	stuck := &halfway{before: []string{"set a = 1", "set b = 1"}, after: []string{"set b = 1", "set c = 2"}}
	plan := &bootstrap.Plan{Steps: []bootstrap.Step{step("a", stuck)}}
	report, err := plan.Apply(t.Context())
	require.ErrorIs(t, err, ledger.ErrRefused)
	require.EqualError(t, err, "step a: verify: written, but it is still different: set b = 1; set c = 2")
	require.Equal(t, "a failed", statuses(report))

	blind := &bootstraptest.Script{Changes: []string{"do it"}, Errs: map[string][]error{"check": {nil, nil, errBoom}}}
	plan = &bootstrap.Plan{Steps: []bootstrap.Step{step("a", blind)}}
	_, err = plan.Apply(t.Context())
	require.EqualError(t, err, "step a: verify: boom")
	require.NotErrorIs(t, err, ledger.ErrRefused)
}

func TestCancelledBetweenSteps(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	first := todo()
	plan := &bootstrap.Plan{
		Steps: []bootstrap.Step{step("a", first), step("b", todo(), "a"), skipped(step("c", nil)), step("d", todo())},
		Trace: &bootstrap.Trace{StepDone: func(context.Context, string, bootstrap.Result) { cancel(errBoom) }},
	}
	report, err := plan.Apply(ctx)
	require.Equal(t, lines("a changed", "b not-run", "c skipped", "d not-run"), statuses(report))
	require.EqualError(t, err, "step b: start: context canceled: boom")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, errBoom, "the cause is named too")
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := todo()
		slow.Hook = func(ctx context.Context, call string) error {
			if call == "apply" {
				<-ctx.Done()
			}
			return nil
		}
		s := step("a", slow)
		s.Timeout = 3 * time.Second
		plan := &bootstrap.Plan{Steps: []bootstrap.Step{s, step("b", todo())}}
		report, err := plan.Apply(t.Context())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualError(t, err, "step a: apply: context deadline exceeded (the step's timeout is 3s)")
		require.Equal(t, lines("a failed", "b not-run"), statuses(report))
		require.Equal(t, 3*time.Second, report.Results[0].Elapsed)
	})
}

func TestPLAN8_PLAN21_APlanThatCannotBePrepared(t *testing.T) {
	var seen []string
	plan := &bootstrap.Plan{
		Steps: []bootstrap.Step{step("gates", nil), step("config", nil), skipped(step("cleanup", nil)), step("bpffs", nil, "config")},
		Trace: &bootstrap.Trace{StepDone: func(_ context.Context, _ string, r bootstrap.Result) { seen = append(seen, r.Step) }},
		Host:  hostns.Host{Proc: "/nowhere"}, // there is nothing to do on the host
	}
	for _, run := range []func(context.Context) (*bootstrap.Report, error){plan.Check, plan.Apply} {
		seen = nil
		plan.Prepare = func(context.Context, *bootstrap.Plan) error {
			return &bootstrap.StepError{Step: "config", Op: "resolve", Err: errBoom}
		}
		report, err := run(t.Context())
		require.EqualError(t, err, "step config: resolve: boom")
		require.Equal(t, lines("gates blocked", "config failed", "cleanup skipped", "bpffs blocked"), statuses(report))
		require.ErrorIs(t, report.Results[1].Err, errBoom)
		require.Equal(t, []string{"gates", "config", "cleanup", "bpffs"}, seen)

		for _, ends := range []error{errBoom, &bootstrap.StepError{Step: "unknown", Op: "resolve", Err: errBoom}} {
			plan.Prepare = func(context.Context, *bootstrap.Plan) error { return ends }
			report, err := run(t.Context())
			require.EqualError(t, err, ends.Error(), "an error of no step's ends the plan")
			require.ErrorIs(t, report.Err, errBoom)
			for _, r := range report.Results {
				require.Equal(t, []any{bootstrap.NotRun, "the plan stopped before it"}, []any{r.Status, r.Reason})
			}
		}
	}
}

func TestPrepareCompletesTheStepsForOneRun(t *testing.T) {
	runs, a := 0, todo()
	plan := &bootstrap.Plan{
		Steps: []bootstrap.Step{step("a", nil), step("b", nil, "a")},
		Prepare: func(_ context.Context, p *bootstrap.Plan) error {
			runs++
			require.Nil(t, p.Step("a").Action, "left from an earlier run")
			p.Step("a").Action = a
			p.Step("b").Skip = "asked for"
			require.Nil(t, p.Step("c"))
			return nil
		},
	}
	report, err := plan.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines("a would-change", "b skipped"), statuses(report))
	report, err = plan.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines("a changed", "b skipped"), statuses(report))

	_, err = plan.Revert(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, runs, "a revert needs no configuration")
}

func TestPLAN2_ALockThatIsHeldIsAnErrorOfThePlan(t *testing.T) {
	a := todo()
	plan := on(node(t.TempDir()+"/state", "pod"), step("a", a))
	locked(t, plan, func() {
		report, err := plan.Apply(t.Context())
		require.ErrorIs(t, err, hostns.ErrLocked)
		require.ErrorContains(t, err, "take the node's lock: ")
		require.ErrorContains(t, err, "another process", "it names the holder")
		require.Equal(t, "a not-run", statuses(report))
		require.Equal(t, []string{"check"}, a.Calls())
		require.Contains(t, report.String(), "\nerror: take the node's lock: ")
		for _, dry := range []runner{(*bootstrap.Plan).Check, (*bootstrap.Plan).CheckRevert, (*bootstrap.Plan).CheckUninstall} {
			_, err := dry(plan, t.Context())
			require.NoError(t, err, "a look takes no lock")
		}
	})
}

// hosted is an action that changes files of the host's.
type hosted struct {
	*bootstraptest.Script
	places map[string]string
}

func (h hosted) OnHost() (namespaces []string, places map[string]string) {
	return []string{"mnt"}, h.places
}

// Whatever changes the node takes its lock, with or without a ledger, and nothing else does.
func TestPLAN2_WhatChangesTheNodeIsLocked(t *testing.T) {
	for name, tc := range map[string]struct {
		step  bootstrap.Step
		locks bool
	}{
		"wants":            {wants("s", newShelf("shelf").want("a=1")), true},
		"on the host":      {step("s", hosted{Script: todo()}), true},
		"local, of action": {bootstrap.Step{Name: "s", Action: hosted{Script: todo()}, Local: true}, false},
		"in memory":        {step("s", todo()), false},
	} {
		plan := &bootstrap.Plan{Host: bootstraptest.Host(t), Steps: []bootstrap.Step{tc.step}}
		locked(t, plan, func() {
			for _, run := range []runner{(*bootstrap.Plan).Apply, (*bootstrap.Plan).Revert} {
				_, err := run(plan, t.Context())
				require.Equal(t, tc.locks, errors.Is(err, hostns.ErrLocked), "%s: %v", name, err)
			}
		})
	}
}

func TestPLAN2_LockIsGivenBackAfterPanic(t *testing.T) {
	a := todo()
	a.Hook = func(_ context.Context, call string) error {
		if call == "apply" {
			panic("boom")
		}
		return nil
	}
	plan := on(node(t.TempDir()+"/state", "pod"), step("a", a))
	require.Panics(t, func() { _, _ = plan.Apply(t.Context()) })
	locked(t, plan, func() {})
}

func TestAdviceIsShownInEachRun(t *testing.T) {
	const advice = "another file sets it too"
	a := adviser{todo(), advice, nil}
	failing := adviser{broken(), advice, nil}
	plan := &bootstrap.Plan{Steps: []bootstrap.Step{step("a", a), optional(step("b", failing)), step("c", struct{ bootstrap.Action }{a})}}
	for i, run := range []func(context.Context) (*bootstrap.Report, error){plan.Check, plan.Apply, plan.Apply} {
		report, err := run(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{advice}, report.Results[0].Advice)
		if i == 1 {
			require.Equal(t, []string{"do it", "note: " + advice}, report.Results[0].Details())
			require.Nil(t, report.Results[1].Advice, "the failure is what matters")
			text, err := json.Marshal(report)
			require.NoError(t, err)
			require.Contains(t, string(text), `"changes":["do it"],"advice":["`+advice+`"],`)
		}
		require.Nil(t, report.Results[2].Advice)
	}
	report, err := (&bootstrap.Plan{Steps: []bootstrap.Step{step("a", adviser{todo(), "", errBoom})}}).Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, bootstrap.WouldChange, report.Results[0].Status)
	require.Equal(t, []string{"there may be more to say: boom"}, report.Results[0].Advice)
}

// adviser has advice, or fails to advise, which is no failure of the step.
type adviser struct {
	*bootstraptest.Script
	advice string
	err    error
}

func (a adviser) Advise(context.Context) ([]string, error) {
	if a.err != nil {
		return nil, a.err
	}
	return []string{a.advice}, nil
}
