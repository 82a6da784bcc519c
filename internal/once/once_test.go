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

func TestOnceARun(t *testing.T) {
	asked := 0
	ask := func(ctx context.Context, key string, fails error) int {
		found, err := once.Do(ctx, key, func() (int, error) {
			asked++
			return asked, fails
		})
		require.Equal(t, fails, err)
		return found
	}
	require.Equal(t, []int{1, 2}, []int{ask(t.Context(), "a", nil), ask(t.Context(), "a", nil)}, "outside of a run")

	run := once.InRun(t.Context())
	fails := errors.New("not yet")
	require.Equal(t, 3, ask(run, "a", fails))
	require.Equal(t, []int{4, 4, 5, 5}, []int{ask(run, "a", nil), ask(run, "a", nil), ask(run, "b", nil), ask(run, "b", nil)})
	require.Equal(t, 6, ask(once.InRun(run), "a", nil), "the next run")

	inner, err := once.Do(run, "outer", func() (int, error) {
		return once.Do(run, "a", func() (int, error) { return 0, fails })
	})
	require.NoError(t, err)
	require.Equal(t, 4, inner)
	_, err = once.Do(run, "a", func() (string, error) { return "", fails })
	require.ErrorIs(t, err, fails, "what was found is of another type")
}
