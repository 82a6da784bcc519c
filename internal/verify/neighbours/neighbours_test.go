// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package neighbours_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/neighbours"
)

// number is a number from the environment, or else a default, with -short another one.
func number(t *testing.T, name string, otherwise, short int) int {
	t.Helper()
	text := os.Getenv(name)
	switch {
	case text == "" && testing.Short():
		return short
	case text == "":
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return n
}

func TestPLAN11_PLAN14_EveryOrder(t *testing.T) {
	depth := number(t, "SLIPWAY_NEIGHBOURS_DEPTH", 2, 1)
	for _, s := range neighbours.Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			done, err := s.Explore(t.Context(), t.TempDir(), neighbours.Options{Depth: depth, Reboots: true})
			t.Log(done)
			require.NoError(t, err)
		})
	}
}

// Longer sequences, without kills.
func TestPLAN11_PLAN14_EveryLongOrder(t *testing.T) {
	depth := number(t, "SLIPWAY_NEIGHBOURS_LONG", 4, 2)
	for _, s := range neighbours.Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			done, err := s.Explore(t.Context(), t.TempDir(), neighbours.Options{Depth: depth, Reboots: true, NoKills: true})
			t.Log(done)
			require.NoError(t, err)
		})
	}
}

// A sample of long walks over all kinds of objects.
func TestPLAN11_PLAN14_Walks(t *testing.T) {
	seed := number(t, "SLIPWAY_NEIGHBOURS_SEED", 1, 1)
	for n := range number(t, "SLIPWAY_NEIGHBOURS_WALKS", 10, 2) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			require.NoError(t, neighbours.Whole().Walk(t.Context(), t.TempDir(), uint64(seed+n), 30, neighbours.Options{Reboots: true}))
		})
	}
}

// The model finds that agents without knowledge of each other conflict.
func TestTheModelFindsWhatIsNaive(t *testing.T) {
	for _, s := range neighbours.Scenarios() {
		_, err := s.Explore(t.Context(), t.TempDir(), neighbours.Options{Depth: 3, Naive: true, NoKills: true})
		require.ErrorAs(t, err, new(*neighbours.Violation), s.Name)
		t.Log(err)
	}
}
