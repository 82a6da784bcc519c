// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package once_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/once"
)

type key string

func TestARunFindsOutOnce(t *testing.T) {
	asked := 0
	ask := func(ctx context.Context, k key, fails error) (int, error) {
		return once.Do(ctx, k, func(context.Context) (int, error) { asked++; return asked, fails })
	}
	run, another := once.With(t.Context()), once.With(t.Context())
	for _, tc := range []struct {
		ctx  context.Context
		key  key
		want int
	}{
		{run, "a", 1}, {run, "a", 1}, {run, "b", 2}, {another, "a", 3}, {run, "a", 1}, {once.With(run), "a", 4},
		{t.Context(), "a", 5}, {t.Context(), "a", 6},
	} {
		got, err := ask(tc.ctx, tc.key, nil)
		require.NoError(t, err)
		require.Equal(t, tc.want, got)
	}

	errAway := errors.New("away")
	_, err := ask(run, "c", errAway)
	require.ErrorIs(t, err, errAway)
	got, err := ask(run, "c", nil)
	require.NoError(t, err, "an error is not remembered")
	require.Equal(t, 8, got)
}
