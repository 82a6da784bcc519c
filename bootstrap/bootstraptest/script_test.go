// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
)

func TestScriptConforms(t *testing.T) {
	s := &bootstraptest.Script{Changes: []string{"first", "second"}}
	bootstraptest.Conform(t, func() bootstrap.Action { return s })
	require.False(t, s.Applied())
}
