// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
)

func TestRDY4_TemplatesOfAnEarlierStartGo(t *testing.T) {
	const template = "/run/agent/templates/deadbeef/program.o"
	n := bootstraptest.NewNode(t)
	write(t, n, template, "")
	cmd, lines := start(t, n, "--templates=/run/agent/templates")
	healthy(t, n, lines)
	require.False(t, exists(n, "/run/agent/templates"))
	write(t, n, template, "")
	_, before, err := get(n, "")
	require.NoError(t, err)
	eventually(t, lines, "another run", func() bool { _, body, _ := get(n, ""); return body != before })
	require.True(t, exists(n, template), "it was made by this start")
	end(t, cmd)
}
