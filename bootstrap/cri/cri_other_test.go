// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package cri_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/cri"
)

func TestOtherSystemsSaySo(t *testing.T) {
	_, err := cri.Find(t.Context(), "")
	require.ErrorIs(t, err, errors.ErrUnsupported)
	_, err = cri.Endpoint{Path: "/run/containerd/containerd.sock"}.Status(t.Context())
	require.ErrorIs(t, err, errors.ErrUnsupported)
}
