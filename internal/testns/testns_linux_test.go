// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package testns_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/testns"
)

func TestEnterProtectsTheMachinesSysctls(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	const machines, own = "/proc/sys/kernel/panic", "/proc/sys/net/ipv4/ip_forward"
	value, err := os.ReadFile(machines)
	require.NoError(t, err)
	require.ErrorIs(t, os.WriteFile(machines, value, 0), unix.EROFS)
	require.NoError(t, os.WriteFile(own, []byte("1"), 0))
}
