// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// What a run was preparing when it was killed, before it had written anything, goes too.
func TestPLAN3_PLAN6_WhatAKilledRunWasPreparingGoes(t *testing.T) {
	left := 0
	for kill := range 12 {
		root := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			p, err := runIn(root, parseScript(t, fmt.Sprintf(`apply 0 s "f:/conf"=1,staged "f:/h"=1,staged kill=%d`, kill+1)))
			require.NoError(t, err, "%d: %s", kill, strings.Join(p.trace, "\n"))
			left += p.node.abandoned
		})
	}
	require.Positive(t, left, "some were killed with a temporary file")
}
