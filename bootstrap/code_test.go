// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/internal/unsupported"
)

// coded is an error with a code, as another module's action may return it.
type coded string

func (coded) Error() string  { return "the tunnel is taken" }
func (c coded) Code() string { return string(c) }

func fails(err error) bootstrap.Action {
	return &bootstraptest.Script{Changes: []string{"do it"}, Errs: map[string][]error{"apply": {err}}}
}

// written runs the plan, and returns its report as decoded from JSON.
func written(t *testing.T, ctx context.Context, plan *bootstrap.Plan) (*bootstrap.Report, error) {
	t.Helper()
	report, err := plan.Apply(ctx)
	text, failure := json.Marshal(report)
	require.NoError(t, failure)
	var read bootstrap.Report
	require.NoError(t, json.Unmarshal(text, &read))
	require.Equal(t, codeOf(report), codeOf(&read), "%s", text)
	require.Equal(t, codes(t, report), codes(t, &read), "%s", text)
	return &read, err
}

// codeOf is the code of a run's cause.
func codeOf(report *bootstrap.Report) string {
	_, err := report.Cause()
	return bootstrap.Code(err)
}

// codes are those of the steps, in JSON.
func codes(t *testing.T, report *bootstrap.Report) (all []string) {
	t.Helper()
	text, err := json.Marshal(report)
	require.NoError(t, err)
	var in struct{ Results []struct{ Code string } }
	require.NoError(t, json.Unmarshal(text, &in))
	for _, r := range in.Results {
		all = append(all, r.Code)
	}
	return all
}

func TestPLAN18_AFailedStepHasItsErrorsCode(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"its own":        {fmt.Errorf("make it: %w", coded("tunnel.taken")), "tunnel.taken"},
		"the first":      {errors.Join(errBoom, coded("tunnel.taken"), coded("tunnel.other")), "tunnel.taken"},
		"before general": {errors.Join(fs.ErrPermission, coded("tunnel.taken")), "tunnel.taken"},
		"of no form":     {coded("TunnelTaken"), "plan.failed"},
		"permission":     {fmt.Errorf("make it: %w", syscall.EACCES), "plan.permission"},
		"read-only":      {syscall.EROFS, "plan.read-only"},
		"full":           {syscall.ENOSPC, "plan.no-space"},
		"quota":          {syscall.EDQUOT, "plan.no-space"},
		"unsupported":    {unsupported.Error("not here"), "plan.unsupported"},
		"any other":      {errBoom, "plan.failed"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := &bootstrap.Plan{Steps: []bootstrap.Step{step("a", todo()), step("b", fails(tc.err)), step("c", todo(), "b")}}
			read, err := written(t, t.Context(), plan)
			var failure *bootstrap.StepError
			require.ErrorAs(t, err, &failure)
			require.Equal(t, tc.want, bootstrap.Code(failure))
			require.Equal(t, tc.want, bootstrap.Code(err))
			require.Equal(t, tc.want, codeOf(read))
			require.Equal(t, []string{"", tc.want, ""}, codes(t, read), "the last is blocked, naming the failed step")
		})
	}
	require.Empty(t, bootstrap.Code(nil))
}

func TestPLAN18_WhatThePlanItselfFindsHasACode(t *testing.T) {
	never := &bootstraptest.Script{Changes: []string{"do it"}, Hook: func(ctx context.Context, call string) error {
		if call == "apply" {
			<-ctx.Done()
			return errBoom // as if the program was killed here
		}
		return nil
	}}
	slow := step("a", never)
	slow.Timeout = time.Millisecond
	stubborn := bootstrap.Func("always", func(context.Context) (bool, error) { return false, nil }, func(context.Context) error { return nil })
	over, end := context.WithCancel(t.Context())
	end()
	for want, tc := range map[string]struct {
		ctx  context.Context
		plan bootstrap.Plan
	}{
		"plan.invalid":   {plan: bootstrap.Plan{Steps: []bootstrap.Step{step("", todo())}}},
		"ledger.refused": {plan: bootstrap.Plan{Steps: []bootstrap.Step{step("a", stubborn)}}},
		"plan.timeout":   {plan: bootstrap.Plan{Steps: []bootstrap.Step{slow}}},
		"plan.canceled":  {over, bootstrap.Plan{Steps: []bootstrap.Step{step("a", todo()), step("b", todo())}}},
		"tunnel.taken": {plan: bootstrap.Plan{Steps: []bootstrap.Step{step("a", todo())}, Prepare: func(context.Context, *bootstrap.Plan) error {
			return coded("tunnel.taken")
		}}},
		"host.no-process": {plan: bootstrap.Plan{Steps: []bootstrap.Step{step("a", hosted{Script: todo()})}, Host: hostns.Host{Proc: "/nowhere"}}},
	} {
		t.Run(want, func(t *testing.T) {
			if tc.ctx == nil {
				tc.ctx = t.Context()
			}
			read, err := written(t, tc.ctx, &tc.plan)
			require.Error(t, err)
			require.Equal(t, want, codeOf(read))
			require.Equal(t, want, bootstrap.Code(err))
		})
	}
}

// Failures that do not fail the run give it no code.
func TestPLAN18_ARunThatHasNotFailedHasNoCode(t *testing.T) {
	read, err := written(t, t.Context(), &bootstrap.Plan{Steps: []bootstrap.Step{optional(step("a", fails(coded("tunnel.taken")))), step("b", todo())}})
	require.NoError(t, err)
	require.Empty(t, codeOf(read))
	require.Equal(t, "tunnel.taken", codes(t, read)[0])

	read, err = written(t, t.Context(), &bootstrap.Plan{Steps: []bootstrap.Step{
		optional(step("a", fails(coded("tunnel.taken")))), step("b", fails(coded("tunnel.other"))),
	}})
	require.Error(t, err)
	require.Equal(t, "tunnel.other", codeOf(read))
}

func TestPLAN17_ASkippedStepSaysWhy(t *testing.T) {
	s := skipped(step("a", nil))
	s.Skip = "nothing to do: no sources"
	for name, prepare := range map[string]func(context.Context, *bootstrap.Plan) error{
		"run": nil,
		"unprepared": func(context.Context, *bootstrap.Plan) error {
			return &bootstrap.StepError{Step: "b", Op: "prepare", Err: errBoom}
		},
	} {
		t.Run(name, func(t *testing.T) {
			read, _ := written(t, t.Context(), &bootstrap.Plan{Steps: []bootstrap.Step{s, step("b", todo())}, Prepare: prepare})
			require.Equal(t, s.Skip, read.Results[0].Reason)
			require.Empty(t, read.Results[1].Reason)
			require.Contains(t, read.String(), "  skipped: a (nothing to do: no sources)\n")
		})
	}
}
