// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package sysctl_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/sysctl"
)

func TestElsewhereThereIsNoKernel(t *testing.T) {
	_, err := sysctl.Kernel{}.Get("net.ipv4.ip_forward")
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorIs(t, sysctl.Kernel{}.Set(sysctl.Forwarding()...), errors.ErrUnsupported)
	require.ErrorIs(t, (&sysctl.Systemd{}).Reload(t.Context()), errors.ErrUnsupported)
}
