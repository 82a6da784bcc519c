// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cluster_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/e2e/cluster"
	"github.com/slipway-dev/slipway/internal/testns"
)

func TestUp(t *testing.T) {
	testns.Root(t)
	t0 := time.Now()
	c, err := cluster.Start(t.Context(), os.Stderr)
	require.NoError(t, err)
	t.Log("up", time.Since(t0))
	out, err := c.Kubectl(t.Context(), "get", "nodes", "-o", "wide")
	t.Log(out, err)
	out, err = c.Kubectl(t.Context(), "describe", "node")
	t.Log(out, err)
	t1 := time.Now()
	require.NoError(t, c.Close())
	t.Log("down", time.Since(t1))
}
