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
		_, err := p.Check(t.Context())
		require.ErrorContains(t, err, want)
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

func TestPLAN17_ACertainErrorFailsAlsoAfterWhatWouldChange(t *testing.T) {
	first := todo()
	second := &bootstraptest.Script{Errs: map[string][]error{"check": {bootstrap.Certain(errBoom), bootstrap.Certain(errBoom)}}}
	p := bootstrap.Plan{Steps: []bootstrap.Step{step("first", first), step("second", second, "first")}}
	report, err := p.Check(t.Context())
	require.ErrorIs(t, err, errBoom)
	require.Equal(t, 1, report.Count(bootstrap.Failed))
	_, err = p.Apply(t.Context())
	require.ErrorIs(t, err, errBoom)
	require.NotContains(t, first.Calls(), "apply")
}
