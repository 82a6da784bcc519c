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
	program, err := programs.Program{Package: "./internal/verify/attack"}.Build(t.Context())
	require.NoError(t, err)
	out, err := exec.Command(program, "-n", n).CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("\n%s", out)
}
