// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package testns_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/testns"
)

// asked records the calls of a test.
type asked struct {
	testing.TB
	skip, fail string
}

func (a *asked) Skip(args ...any)                  { a.skip = fmt.Sprint(args...) }
func (a *asked) Fatalf(format string, args ...any) { a.fail = fmt.Sprintf(format, args...) }

func TestSkipShortDoesWhatTestingShortSays(t *testing.T) {
	a := &asked{TB: t}
	testns.SkipShort(a, "an hour")
	require.Equal(t, testing.Short(), a.skip == "takes an hour: make verify runs it", a.skip)
}

func TestASkipFailsWhereNoneIsAllowed(t *testing.T) {
	for required, fails := range map[string]bool{"": false, "0": false, "1": true} {
		t.Setenv(testns.RequireEnv, required)
		a := &asked{TB: t}
		testns.Skip(a, "no disk")
		require.Contains(t, a.skip, "no disk")
		require.Equal(t, fails, a.fail == testns.RequireEnv+"=1 allows no skip: no disk", a.fail)
	}
}
