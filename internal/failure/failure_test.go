// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package failure_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/failure"
)

func TestSet(t *testing.T) {
	var s failure.Set
	s.Add(nil)
	require.NoError(t, s.Join())
	cause := errors.New("cause")
	for range 3 {
		s.Add(fmt.Errorf("link: %w", cause))
	}
	require.EqualError(t, s.Join(), "link: cause")
	require.ErrorIs(t, s.Join(), cause)
	for i := range 150 {
		s.Add(fmt.Errorf("link %d", i))
	}
	lines := strings.Split(s.Join().Error(), "\n")
	require.Len(t, lines, 101)
	require.Equal(t, "and 51 more errors", lines[100])
}
