// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
)

// reverter is a Script without CheckRevert.
type reverter struct {
	bootstrap.Action
	revert func(context.Context) error
}

func (r reverter) Revert(ctx context.Context) error { return r.revert(ctx) }

func blind(s *bootstraptest.Script) bootstrap.Action { return reverter{s, s.Revert} }

// final removes Revert from a Script.
func final(s *bootstraptest.Script) bootstrap.Action { return bootstrap.Func(s.Check, s.Apply) }

var errNothing = fmt.Errorf("no state directory: %w", errors.ErrUnsupported)

func TestRevertGoesBackwardsAndOn(t *testing.T) {
	a, b, c := todo(), todo(), todo()
	b.RevertErrs = []error{errBoom}
	plan := &bootstrap.Plan{Steps: []bootstrap.Step{
		step("a", a), optional(step("b", b, "a")), step("c", c, "b"), skipped(step("d", nil)),
	}}
	_, err := plan.Apply(t.Context())
	require.NoError(t, err)

	report, err := plan.Revert(t.Context())
	require.EqualError(t, err, "step b: revert: boom", "also of an optional step")
	require.Equal(t, lines("d skipped", "c changed", "b failed", "a changed"), statuses(report))
	require.Equal(t, []string{"undo do it"}, report.Results[1].Changes)
	require.False(t, a.Applied())
	require.True(t, b.Applied())

	report, err = plan.Revert(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines("d skipped", "c unchanged", "b changed", "a unchanged"), statuses(report))
}

func TestRevertJoinsErrors(t *testing.T) {
	a, b := todo(), todo()
	a.RevertErrs, b.CheckRevertErrs = []error{errBoom}, []error{errBoom}
	plan := &bootstrap.Plan{Steps: []bootstrap.Step{step("a", a), step("b", b)}}
	report, err := plan.Revert(t.Context())
	require.EqualError(t, err, "step b: check-revert: boom\nstep a: revert: boom")
	require.Equal(t, lines("b failed", "a failed"), statuses(report))
	require.NotContains(t, b.Calls(), "revert", "what cannot be looked at is not undone")
}

func TestRevertAlwaysCallsRevert(t *testing.T) {
	a := todo() // nothing was applied, but the record may need clearing
	report, err := (&bootstrap.Plan{Steps: []bootstrap.Step{step("a", a)}}).Revert(t.Context())
	require.NoError(t, err)
	require.Equal(t, "a unchanged", statuses(report))
	require.Equal(t, []string{"check-revert", "revert", "check-revert"}, a.Calls())
}

// still has something to revert whatever happens.
type still struct{ *bootstraptest.Script }

func (still) CheckRevert(context.Context) ([]string, error) { return []string{"unmount it"}, nil }

func TestRevertVerifies(t *testing.T) {
	plan := &bootstrap.Plan{Steps: []bootstrap.Step{step("a", still{todo()})}}
	report, err := plan.Revert(t.Context())
	require.ErrorIs(t, err, bootstrap.ErrNotConverged)
	require.EqualError(t, err, "step a: verify: still not as it should be: unmount it")
	require.Equal(t, "a failed", statuses(report))
}

func TestNS6_NothingToRevertIsNoFailure(t *testing.T) {
	unrecorded, unrecordedToo := todo(), todo()
	unrecorded.RevertErrs = []error{errNothing}
	unrecordedToo.RevertErrs, unrecordedToo.CheckRevertErrs = []error{errNothing}, []error{errNothing}
	plan := &bootstrap.Plan{Steps: []bootstrap.Step{
		step("final", final(todo())),
		step("retried", bootstrap.Retry(final(todo()), nil)),
		step("unrecorded", unrecorded),
		step("unrecorded-too", unrecordedToo),
		step("blind", blind(todo())),
		step("blind-retried", bootstrap.Retry(blind(todo()), nil)),
	}}
	report, err := plan.Revert(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines("blind-retried changed", "blind changed", "unrecorded-too skipped", "unrecorded skipped", "retried skipped", "final skipped"), statuses(report))
	require.EqualError(t, report.Results[2].Err, "step unrecorded-too: revert: no state directory: unsupported operation")
	require.EqualError(t, report.Results[5].Err, "step final: revert: the action cannot be reverted")
	require.False(t, report.Results[5].Status == bootstrap.Failed)
}

func TestCheckRevert(t *testing.T) {
	applied, unrecorded, corrupt, never := todo(), todo(), todo(), todo()
	require.NoError(t, applied.Apply(t.Context()))
	unrecorded.CheckRevertErrs = []error{errNothing}
	corrupt.CheckRevertErrs = []error{errBoom}
	plan := &bootstrap.Plan{Steps: []bootstrap.Step{
		step("applied", applied),
		step("never", never, "applied"),
		step("unrecorded", unrecorded),
		step("corrupt", corrupt),
		step("blind", blind(todo())),
		step("final", final(todo())),
	}}
	report, err := plan.CheckRevert(t.Context())
	require.EqualError(t, err, "step corrupt: check-revert: boom")
	require.Equal(t, lines("final skipped", "blind unknown", "corrupt failed", "unrecorded skipped", "never unchanged", "applied would-change"), statuses(report))
	require.Equal(t, []string{"undo do it"}, report.Results[5].Changes)
	require.Equal(t, []string{"apply", "check-revert"}, applied.Calls())
}

func TestRevertStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := todo()
	plan := &bootstrap.Plan{
		Steps: []bootstrap.Step{step("a", a), step("b", todo())},
		Trace: &bootstrap.Trace{StepDone: func(context.Context, bootstrap.Op, bootstrap.Result) { cancel() }},
	}
	report, err := plan.Revert(ctx)
	require.EqualError(t, err, "step a: start: context canceled")
	require.Equal(t, lines("b unchanged", "a not-run"), statuses(report))
	require.Empty(t, a.Calls())
}

// ending is an action whose Revert returns err, and which has no CheckRevert.
type ending struct{ err error }

func (ending) Check(context.Context) ([]string, error) { return nil, nil }
func (ending) Apply(context.Context) error             { return nil }
func (r ending) Revert(context.Context) error          { return r.err }

func TestAFailureIsNotTakenForNothingToRevert(t *testing.T) {
	nothing := fmt.Errorf("no state directory: %w", errors.ErrUnsupported)
	for name, tc := range map[string]struct {
		err  error
		want bootstrap.Status
	}{
		"nothing to revert":           {nothing, bootstrap.Skipped},
		"wrapped beside a sentinel":   {fmt.Errorf("%w: %w", errors.New("not the owner"), errors.ErrUnsupported), bootstrap.Skipped},
		"all of several":              {errors.Join(nothing, nothing), bootstrap.Skipped},
		"one of several":              {errors.Join(errors.New("half of it"), nothing), bootstrap.Failed},
		"a call the kernel lacks":     {&os.PathError{Op: "rename", Path: "/x", Err: syscall.EOPNOTSUPP}, bootstrap.Failed},
		"a call the kernel lacks too": {fmt.Errorf("undo: %w", syscall.ENOSYS), bootstrap.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			for _, a := range []bootstrap.Action{ending{tc.err}, bootstrap.Retry(ending{tc.err}, nil)} {
				p := bootstrap.Plan{Steps: []bootstrap.Step{{Name: "s", Action: a}}}
				report, err := p.Revert(t.Context())
				require.Equal(t, tc.want, report.Results[0].Status)
				require.Equal(t, tc.want == bootstrap.Failed, err != nil)
			}
		})
	}
}

func TestWhatCannotSayBeforehandIsUnknownAlsoThroughWrappers(t *testing.T) {
	for _, a := range []bootstrap.Action{ending{}, bootstrap.Retry(ending{}, nil), bootstrap.Retry(bootstrap.Retry(ending{}, nil), nil)} {
		p := bootstrap.Plan{Steps: []bootstrap.Step{{Name: "s", Action: a}}}
		report, err := p.CheckRevert(t.Context())
		require.NoError(t, err)
		require.Equal(t, bootstrap.Unknown, report.Results[0].Status, "%T", a)
	}
}
