// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package hostns_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/hostns"
)

func TestDoIsUnsupported(t *testing.T) {
	require.ErrorIs(t, hostns.Do(t.Context(), "/proc/1", []string{"mnt"}, mustNotRun(t)), errors.ErrUnsupported)
	require.ErrorIs(t, hostns.Host{Proc: "/proc"}.Do(t.Context(), []string{"mnt"}, mustNotRun(t)), errors.ErrUnsupported)
}
