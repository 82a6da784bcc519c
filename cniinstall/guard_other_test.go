// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package cniinstall_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cniinstall"
)

func TestCNI7_NeedsLinux(t *testing.T) {
	require.ErrorIs(t, cniinstall.Guard{}.Run(t.Context()), errors.ErrUnsupported)
}
