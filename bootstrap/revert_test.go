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
