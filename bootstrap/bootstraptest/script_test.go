// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
)

func TestScriptConforms(t *testing.T) {
	s := &bootstraptest.Script{Changes: []string{"first", "second"}}
	bootstraptest.Conform(t, func() bootstrap.Action { return s })
	require.False(t, s.Applied())
}

func TestScriptErrorsPerCall(t *testing.T) {
	first, third := errors.New("first"), errors.New("third")
	s := &bootstraptest.Script{Changes: []string{"do it"}, ApplyErrs: []error{first, nil, third}}
	require.Equal(t, first, s.Apply(t.Context()))
	require.False(t, s.Applied(), "a call that errs changes nothing")
	require.NoError(t, s.Apply(t.Context()))
	require.True(t, s.Applied())
	require.Equal(t, third, s.Apply(t.Context()))
	require.NoError(t, s.Apply(t.Context()))

	s = &bootstraptest.Script{CheckErrs: []error{first}, RevertErrs: []error{first}, CheckRevertErrs: []error{first}}
	_, err := s.Check(t.Context())
	require.Equal(t, first, err)
	require.Equal(t, first, s.Revert(t.Context()))
	_, err = s.CheckRevert(t.Context())
	require.Equal(t, first, err)
	require.Equal(t, []string{"check", "revert", "check-revert"}, s.Calls())
}

func TestScriptAnswers(t *testing.T) {
	s := &bootstraptest.Script{Changes: []string{"a", "b"}, Left: []string{"b"}}
	changes, err := s.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, changes)
	changes[0] = "spoilt"
	require.NoError(t, s.Apply(t.Context()))
	changes, err = s.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, changes)
	changes, err = s.CheckRevert(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"undo b", "undo a"}, changes, "the caller's slice is its own")
}

func TestScriptHook(t *testing.T) {
	stop := errors.New("stop")
	var seen []string
	s := &bootstraptest.Script{Hook: func(_ context.Context, call string) error {
		seen = append(seen, call)
		if call == "apply" {
			return stop
		}
		return nil
	}}
	_, err := s.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, stop, s.Apply(t.Context()))
	require.False(t, s.Applied())
	require.Equal(t, []string{"check", "apply"}, seen)
}

func TestScriptHeedsItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &bootstraptest.Script{Changes: []string{"do it"}}
	_, err := s.Check(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, s.Apply(ctx), context.Canceled)
	require.False(t, s.Applied())
}
