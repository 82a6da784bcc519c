// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpffs_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/fsmount/fsmounttest"
	"github.com/slipway-dev/slipway/internal/testledger"
)

// private asserts that m refuses a mount that would end with the container, and
// that the error explains how to make it last.
func private(t *testing.T, m bpffs.Mount, parent string) {
	t.Helper()
	_, err := m.Check(t.Context())
	for _, err := range []error{err, m.Apply(t.Context())} {
		require.ErrorContains(t, err, m.Path)
		require.ErrorContains(t, err, "mountPropagation: Bidirectional")
		require.ErrorContains(t, err, "mount --make-shared "+parent)
		require.Equal(t, "bpffs.not-shared", code.Of(err))
	}
	require.NoDirExists(t, m.Path)
}

func TestBPF3_PrivateIsRefusedWhereAsked(t *testing.T) {
	n := fsmounttest.NewFake(t)
	n.K.Private = true
	m := bpffs.Mount{Path: filepath.Join(n.Dir(), "bpf"), Kernel: n.K, Shared: true}
	private(t, m, "/")

	m.Shared = false
	require.NoError(t, m.Apply(t.Context()))
	m.Shared = true
	require.Empty(t, testledger.Changes(t, m), "the existing mount came from outside")
}
