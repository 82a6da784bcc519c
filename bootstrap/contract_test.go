// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

func TestPLAN11_ALedgerSaysForWhom(t *testing.T) {
	for want, l := range map[string]*ledger.Ledger{
		"no owner is named":              {Agent: "a"},
		`agent "" is not a DNS label`:    {NoOwner: true},
		`agent "A b" is not a DNS label`: {Agent: "A b", NoOwner: true},
	} {
		p := &bootstrap.Plan{Ledger: l}
		require.ErrorContains(t, p.Validate(), want)
		report, err := p.Apply(t.Context())
		require.ErrorContains(t, err, "invalid plan: ")
		require.ErrorContains(t, report.Err, want)
	}
}

// A plan changed by Prepare is validated again, before anything is locked.
func TestPLAN19_APreparedPlanIsValidatedAgain(t *testing.T) {
	for want, prepare := range map[string]func(p *bootstrap.Plan){
		`step "s" has neither Wants nor`:    func(*bootstrap.Plan) {},
		"invalid plan: state directory":     func(p *bootstrap.Plan) { p.Step("s").Action, p.Ledger = todo(), node("x", "pod") },
		`step "s" has a nil *bootstraptest`: func(p *bootstrap.Plan) { p.Step("s").Action = (*bootstraptest.Script)(nil) },
	} {
		for _, run := range []runner{(*bootstrap.Plan).Check, (*bootstrap.Plan).Apply} {
			p := on(node(t.TempDir()+"/state", "pod"), step("s", nil))
			p.Prepare = func(_ context.Context, p *bootstrap.Plan) error { prepare(p); return nil }
			report, err := run(p, t.Context())
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, report.Err, want)
			require.Equal(t, "s not-run", statuses(report))
		}
	}
}

// An error that is none of a step's ends a run that is being prepared, and no step is blamed.
func TestPLAN21_AFailureOfNoStepLeavesAReasonForEachStep(t *testing.T) {
	ends := errors.New("no host")
	plan := bootstrap.Plan{
		Steps:   []bootstrap.Step{{Name: "first"}, {Name: "second"}},
		Prepare: func(context.Context, *bootstrap.Plan) error { return ends },
	}
	for _, run := range []func(context.Context) (*bootstrap.Report, error){plan.Check, plan.Apply} {
		report, err := run(t.Context())
		require.ErrorIs(t, err, ends)
		require.ErrorIs(t, report.Err, ends)
		require.Len(t, report.Results, 2)
		for _, r := range report.Results {
			require.Equal(t, bootstrap.NotRun, r.Status)
			require.Equal(t, "the plan stopped before it", r.Reason)
		}
	}
}

// The error of a step that was waiting when the run was to end names why that was.
func TestPLAN20_AWaitThatEndsNamesTheCause(t *testing.T) {
	cause := errors.New("--timeout of 3s is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	waiting := &bootstraptest.Script{Changes: []string{"one"}}
	waiting.Hook = func(ctx context.Context, call string) error {
		if call != "apply" {
			return nil
		}
		cancel(cause)
		return fmt.Errorf("wait for it: %w", ctx.Err())
	}
	_, err := (&bootstrap.Plan{Steps: []bootstrap.Step{{Name: "waits", Action: waiting}}}).Apply(ctx)
	require.EqualError(t, err, "step waits: apply: wait for it: context canceled: --timeout of 3s is over")
	require.ErrorIs(t, err, context.Canceled)
}

func TestPLAN19_ANilIsSaidAndNoPanic(t *testing.T) {
	var a *bootstraptest.Script
	for want, p := range map[string]*bootstrap.Plan{
		`step "a" has a nil *bootstraptest.Script`:      {Steps: []bootstrap.Step{{Name: "a", Action: a}}},
		`gate "a gate" has a nil *bootstraptest.Script`: {Gates: []bootstrap.Step{{Name: "a gate", Gate: a}}},
	} {
		require.ErrorContains(t, p.Validate(), want)
	}
}

func TestPLAN17_ACertainErrorFailsAlsoAfterWhatWouldChange(t *testing.T) {
	first := todo()
	second := &bootstraptest.Script{CheckErrs: []error{bootstrap.Certain(errBoom), bootstrap.Certain(errBoom)}}
	p := bootstrap.Plan{Steps: []bootstrap.Step{step("first", first), step("second", second, "first")}}
	report, err := p.Check(t.Context())
	require.ErrorIs(t, err, errBoom)
	require.Equal(t, 1, report.Count(bootstrap.Failed))
	_, err = p.Apply(t.Context())
	require.ErrorIs(t, err, errBoom)
	require.False(t, first.Applied())
}
