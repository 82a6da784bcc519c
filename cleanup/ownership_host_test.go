// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/cleanup/ownershipfile"
)

// exampleOwnership is the content of a file of examples/ownership.
func exampleOwnership(t *testing.T, name string) cleanup.Ownership {
	t.Helper()
	content, err := os.ReadFile("../examples/ownership/" + name + ".yaml")
	require.NoError(t, err)
	own, err := ownershipfile.Parse(content)
	require.NoError(t, err)
	return own
}
