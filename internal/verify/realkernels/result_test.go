// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const printed = `some firmware
@@LINUX 5.10.0-46-amd64 #1 SMP Debian 5.10.262-1 (2026-07-31)
@@BEGIN demo
Nothing is left
@@END demo 0 5.1
@@BEGIN tests/cgroup
=== RUN   TestOne
--- PASS: TestOne (0.01s)
=== RUN   TestTwo
    two_test.go:9: there is no such thing
--- SKIP: TestTwo (0.00s)
=== RUN   TestThree
    --- FAIL: TestThree/part (0.00s)
--- FAIL: TestThree (0.00s)
@@END tests/cgroup 1 0.3
`

func TestParse(t *testing.T) {
	r := parse(printed + "@@ENDED\n")
	require.Equal(t, "5.10.262", r.version())
	require.True(t, r.ended)
	require.True(t, r.works("demo"))
	require.False(t, r.works(tests))
	p := r.parts["tests/cgroup"]
	require.Equal(t, []string{"TestOne"}, p.passed)
	require.Equal(t, []string{"TestThree"}, p.failed)
	require.Equal(t, []string{"TestTwo: two_test.go:9: there is no such thing"}, p.skipped)

	require.Equal(t, "yes", r.cell("demo"))
	require.Equal(t, "1 passed, **1 failed**", r.cell(tests))
	require.Empty(t, r.cell("life"), "it was not run")
	for test, want := range map[string]string{"TestOne": "yes", "TestTwo": "not in this kernel", "TestThree": "**no**", "TestFour": ""} {
		require.Equal(t, want, r.cell("tests/cgroup "+test))
	}
	require.True(t, r.good(boot{parts: []string{"demo"}}))
	require.Contains(t, r.text(boot{parts: []string{"demo", tests}}), "failed: TestThree")
}

// A virtual machine that dies early counts as no result.
func TestParseUnfinished(t *testing.T) {
	r := parse(printed + "@@BEGIN tests/sysctl\n--- PASS: TestFour (0.01s)\nPANIC: double fault\n")
	require.False(t, r.ended)
	require.False(t, r.good(boot{parts: []string{"demo"}}))
	require.Equal(t, "unfinished", r.parts["tests/sysctl"].status)
	require.False(t, r.works(tests))
	require.Contains(t, r.text(boot{parts: []string{"life"}}), "not run")
	require.Contains(t, r.why(boot{parts: []string{tests}}), "--- of tests/sysctl\nPANIC: double fault\n")
}
