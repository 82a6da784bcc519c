// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package code_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/code"
)

// foreign is an error of another library, whose codes have another meaning.
type foreign string

func (foreign) Error() string  { return "foreign" }
func (f foreign) Code() string { return string(f) }

func TestTheFirstWellFormedCodeInAnErrorIsItsCode(t *testing.T) {
	sentinel := code.New("lock.held", "held")
	for want, err := range map[string]error{
		"lock.held":  fmt.Errorf("take it: %w", errors.Join(errors.New("other"), foreign("AccessDenied"), sentinel, foreign("cni.in-use"))),
		"cni.in-use": foreign("cni.in-use"),
		"":           fmt.Errorf("take it: %w", foreign("AccessDenied")),
	} {
		require.Equal(t, want, code.Of(err), "%v", err)
	}
	require.Empty(t, code.Of(nil))
	for _, no := range []string{"", "lock", ".held", "lock.", "lock.held.long", "Lock.held", "lock.held-", "lock.-held", "lock.a--b", "l0ck.held", "lock.is held", "a." + strings.Repeat("b", 80)} {
		require.Empty(t, code.Of(foreign(no)), no)
	}
}

func TestAnErrorKeepsItsTextItsIdentityAndItsFirstCode(t *testing.T) {
	require.NoError(t, code.Wrap("lock.held", nil))
	err := code.Wrap("plan.permission", fmt.Errorf("write: %w", fs.ErrPermission))
	require.EqualError(t, err, "write: permission denied")
	require.ErrorIs(t, err, fs.ErrPermission)
	require.Equal(t, "plan.permission", code.Of(err))
	require.Equal(t, err, code.Wrap("lock.held", err), "the code nearest to the cause wins")

	again := code.Errorf("lock.held", "step: %w", err)
	require.EqualError(t, again, "step: write: permission denied")
	require.Equal(t, "plan.permission", code.Of(again))
	require.Equal(t, "lock.held", code.Of(code.Errorf("lock.held", "by %d", 7)))
	require.NotErrorIs(t, code.New("lock.held", "held"), code.New("lock.held", "held"))
}
