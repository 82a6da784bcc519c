// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
)

func TestWrappersConform(t *testing.T) {
	s := todo()
	bootstraptest.Conform(t, func() bootstrap.Action { return bootstrap.Retry(s, nil) })
	s = todo()
	bootstraptest.Conform(t, func() bootstrap.Action { return bootstrap.Func(s.Check, s.Apply) })
	_, undoes := bootstrap.Func(s.Check, s.Apply).(bootstrap.Undoer)
	require.False(t, undoes)
}

func isBoom(err error) bool { return errors.Is(err, errBoom) }

func TestRetryWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &bootstraptest.Script{
			Changes:   []string{"do it"},
			CheckErrs: []error{errBoom},
			ApplyErrs: []error{errBoom, errBoom},
			UndoErrs:  []error{errBoom},
		}
		a := bootstrap.Retry(s, isBoom, time.Second, 5*time.Second)
		start := time.Now()

		changes, err := a.Check(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"do it"}, changes)
		require.Equal(t, time.Second, time.Since(start))

		require.NoError(t, a.Apply(t.Context()))
		require.Equal(t, 7*time.Second, time.Since(start), "two waits more")

		require.NoError(t, a.(bootstrap.Undoer).Undo(t.Context()))
		require.Equal(t, 8*time.Second, time.Since(start))
	})
}

func TestRetryGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &bootstraptest.Script{ApplyErrs: []error{errBoom, errBoom, errBoom}}
		err := bootstrap.Retry(s, isBoom, time.Second, time.Second).Apply(t.Context())
		require.ErrorIs(t, err, errBoom)
		require.EqualError(t, err, "boom (after 3 tries)")
		require.Len(t, s.Calls(), 3)
	})
}

func TestRetryFinalErrors(t *testing.T) {
	final := errors.New("no such thing")
	s := &bootstraptest.Script{ApplyErrs: []error{final}}
	require.Equal(t, final, bootstrap.Retry(s, isBoom, time.Hour).Apply(t.Context()))
	require.Len(t, s.Calls(), 1)
	require.Error(t, bootstrap.Retry(nil, nil).Apply(t.Context()))

	synctest.Test(t, func(t *testing.T) {
		s := &bootstraptest.Script{ApplyErrs: []error{final}}
		require.NoError(t, bootstrap.Retry(s, nil, time.Second).Apply(t.Context()), "nil retries every error")
		require.Len(t, s.Calls(), 2)
	})
}

func TestRetryWaitEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := &bootstraptest.Script{ApplyErrs: []error{errBoom}}
		start := time.Now()
		err := bootstrap.Retry(s, isBoom, time.Hour).Apply(ctx)
		require.Equal(t, time.Second, time.Since(start))
		require.ErrorIs(t, err, errBoom, "the last error seen")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualError(t, err, "boom (gave up waiting for another try: context deadline exceeded)")
		require.Len(t, s.Calls(), 1)

		require.ErrorIs(t, bootstrap.Retry(s, nil, 0).Apply(ctx), context.DeadlineExceeded)
		require.Len(t, s.Calls(), 2, "with a context already done: one try, no wait")
	})
}
