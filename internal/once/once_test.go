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

type key struct{}

// A run remembers an answer and no error; a resolution remembers both, and the next one neither.
func TestWhatIsRemembered(t *testing.T) {
	calls := 0
	failing := func(context.Context) (int, error) {
		if calls++; calls%2 == 1 {
			return 0, errors.New("not now")
		}
		return calls, nil
	}
	run := once.With(t.Context())
	for _, want := range []int{0, 2, 2} {
		got, err := once.Do(run, key{}, failing)
		require.Equal(t, want == 0, err != nil)
		require.Equal(t, want, got)
	}
	for range 2 {
		calls = 0
		resolution := once.WithinResolution(t.Context())
		for range 3 {
			_, err := once.Read(once.WithinResolution(resolution), key{}, failing)
			require.EqualError(t, err, "not now")
		}
		require.Equal(t, 1, calls)
	}
	_, err := once.Read(run, key{}, failing)
	require.NoError(t, err, "outside a resolution it is read each time")
}
