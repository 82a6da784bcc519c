// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/programs"
)

// An attacker who exchanges names during an operation succeeds against no operation of ours,
// and against each naive version.
func TestSEC1_SEC4_SEC11_BesideAnAttacker(t *testing.T) {
	testns.Root(t)
	n := "2000"
	if testing.Short() {
		n = "100"
	}
	out, err := exec.Command(build(t), "-n", n).CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("\n%s", out)
}

// A target that does not exist is an error.
func TestNothingToTryIsAnError(t *testing.T) {
	testns.Root(t)
	out, err := exec.Command(build(t), "-target", "no such").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "no target")
}

func build(t *testing.T) string {
	t.Helper()
	program, err := programs.Program{Package: "./internal/verify/attack"}.Build(t.Context())
	require.NoError(t, err)
	return program
}
