// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
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

// A disk that fails after the file was replaced is no other process that has replaced it.
func TestPLAN6_AFileThatCouldNotBeMadeDurableIsWrittenAgain(t *testing.T) {
	values, m := map[string]string{}, &ledger.Memory{}
	k, wants := kept(values)
	book := (&ledger.Ledger{Agent: "a"}).OpenIn(m, "boot0")
	applied(t, book, "s", wants)
	k.Parts = func(context.Context, string) ([]string, error) { // the undoing is saved before it is written
		m.Sync = syscall.EIO
		return nil, nil
	}
	_, err := book.Undo(t.Context(), nil)
	require.ErrorIs(t, err, syscall.EIO)
	require.NotContains(t, err.Error(), "another process")
	require.NotEmpty(t, values)
	k.Parts = nil
	undoes(t, book)
	require.Empty(t, values)
	require.Nil(t, m.Content)
}
