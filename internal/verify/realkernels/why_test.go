// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var someTests = boot{parts: []string{"demo", tests}}

const demoWorks = "@@BEGIN demo\nNothing is left\n@@END demo 0 5.1\n"

// printedBy is the output of a package's tests, in a virtual machine that ran to its end.
func printedBy(output string, status int) string {
	return fmt.Sprintf("%s@@BEGIN tests/cleanup\n%s\n@@END tests/cleanup %d 0.3\n@@ENDED\n", demoWorks, output, status)
}

func TestWhyShowsWhatFailedTestsPrinted(t *testing.T) {
	why := parse(printedBy(`=== RUN   TestGood
    good_test.go:5: fine
--- PASS: TestGood (0.01s)
=== RUN   TestBad
=== RUN   TestBad/first
    bad_test.go:7: well
=== RUN   TestBad/second
    bad_test.go:9: it is bad
=== NAME  TestBad
    bad_test.go:12: in the end
--- FAIL: TestBad (0.02s)
    --- PASS: TestBad/first (0.01s)
    --- FAIL: TestBad/second (0.01s)
=== RUN   TestAfter
--- PASS: TestAfter (0.01s)
FAIL
kernel: <3>[   12.3] Out of memory: Killed process 77 (test)`, 1)).why(someTests)
	require.Equal(t, `--- of tests/cleanup
=== RUN   TestBad
=== NAME  TestBad
    bad_test.go:12: in the end
--- FAIL: TestBad (0.02s)
--- of tests/cleanup
=== RUN   TestBad/second
    bad_test.go:9: it is bad
    --- FAIL: TestBad/second (0.01s)
--- of tests/cleanup
kernel: <3>[   12.3] Out of memory: Killed process 77 (test)
`, why)
}

func TestWhyShowsParallelTests(t *testing.T) {
	why := parse(printedBy(`=== RUN   TestOne
=== PAUSE TestOne
=== RUN   TestTwo
=== PAUSE TestTwo
=== CONT  TestOne
=== CONT  TestTwo
    two_test.go:3: of the second
=== NAME  TestOne
    one_test.go:3: of the first
--- PASS: TestTwo (0.1s)
--- FAIL: TestOne (0.1s)
FAIL`, 1)).why(someTests)
	require.Contains(t, why, "of the first\n--- FAIL: TestOne (0.1s)\n")
	require.NotContains(t, why, "of the second")
}

func TestWhyShowsACrash(t *testing.T) {
	for name, output := range map[string]string{
		"panic":   "=== RUN   TestBad\n--- FAIL: TestBad (0.0s)\npanic: at once [recovered]\n\ngoroutine 7 [running]:",
		"timeout": "=== RUN   TestSlow\npanic: test timed out after 39m0s\n\trunning tests:\n\t\tTestSlow (38m0s)",
		"fatal":   "=== RUN   TestBad\nfatal error: concurrent map writes",
	} {
		t.Run(name, func(t *testing.T) {
			lines := strings.Split(output, "\n")
			why := parse(printedBy(output+strings.Repeat("\nmain.f()", 500), 2)).why(someTests)
			require.Contains(t, why, lines[len(lines)-1])
			require.Contains(t, why, "more lines")
			require.LessOrEqual(t, strings.Count(why, "\n"), linesOfAll+1)
		})
	}
}

// If no test reports a failure, the end of the output is shown.
func TestWhyShowsTheEndOfTheRest(t *testing.T) {
	many := strings.Repeat("--- PASS: TestMany (0.01s)\n", 1000)
	for name, printed := range map[string]string{
		"the tests were killed":      printedBy(many+"the last line", 137),
		"the machine has died":       demoWorks + "@@BEGIN tests/cleanup\n" + many + "Kernel panic - not syncing: the last line\n",
		"between two parts":          demoWorks + many + "the last line\n",
		"there is nothing to test":   demoWorks + "@@ERROR the last line\n",
		"nothing failed, no @@ENDED": strings.TrimSuffix(printedBy(many, 0), "@@ENDED\n") + "the last line\n",
	} {
		t.Run(name, func(t *testing.T) {
			why := parse(printed).why(someTests)
			require.Contains(t, why, "the last line\n")
			require.LessOrEqual(t, strings.Count(why, "\n"), linesOfOne+3)
		})
	}
}

func TestWhyIsBounded(t *testing.T) {
	var output strings.Builder
	for i := range 50 {
		fmt.Fprintf(&output, "=== RUN   TestBad%d\n%s    bad_test.go:9: the last line\n--- FAIL: TestBad%[1]d (0.02s)\n", i, strings.Repeat("    bad_test.go:7: much\n", 100))
	}
	why := parse(printedBy(output.String(), 1)).why(someTests)
	require.Contains(t, why, "the last line\n--- FAIL: TestBad2 (0.02s)\n")
	require.Equal(t, linesOfAll+1, strings.Count(why, "\n"))
	require.Regexp(t, `\n\.\.\. \d+ more lines\n$`, why)
}

// A script's output is whole in text.
func TestWhyLeavesTheRestToText(t *testing.T) {
	require.Empty(t, parse(printedBy("--- PASS: TestGood (0.01s)", 0)).why(someTests))
	r := parse("@@BEGIN demo\nit is bad\n@@END demo 1 5.1\n@@ENDED\n")
	require.Empty(t, r.why(boot{parts: []string{"demo"}}))
	require.Contains(t, r.text(boot{parts: []string{"demo"}}), "it is bad")
}
