// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The output of go test -json for three packages, shortened.
const printed = `{"Action":"start","Package":"github.com/slipway-dev/slipway/good"}
{"Action":"run","Package":"github.com/slipway-dev/slipway/good","Test":"TestSkipped"}
{"Action":"output","Package":"github.com/slipway-dev/slipway/good","Test":"TestSkipped","Output":"    x_test.go:5: needs root\n"}
{"Action":"output","Package":"github.com/slipway-dev/slipway/good","Test":"TestSkipped","Output":"--- SKIP: TestSkipped (0.00s)\n"}
{"Action":"skip","Package":"github.com/slipway-dev/slipway/good","Test":"TestSkipped"}
{"Action":"run","Package":"github.com/slipway-dev/slipway/good","Test":"TestGood"}
{"Action":"pass","Package":"github.com/slipway-dev/slipway/good","Test":"TestGood"}
{"Action":"pass","Package":"github.com/slipway-dev/slipway/good","Elapsed":1.5}
{"Action":"start","Package":"github.com/slipway-dev/slipway"}
{"Action":"run","Package":"github.com/slipway-dev/slipway","Test":"TestBad"}
{"Action":"output","Package":"github.com/slipway-dev/slipway","Test":"TestBad","Output":"    x_test.go:9: it is bad\n"}
{"Action":"fail","Package":"github.com/slipway-dev/slipway","Test":"TestBad"}
{"Action":"fail","Package":"github.com/slipway-dev/slipway","Elapsed":0.1}
{"ImportPath":"github.com/slipway-dev/slipway/broken","Action":"build-output","Output":"undefined: x\n"}
{"Action":"start","Package":"github.com/slipway-dev/slipway/broken"}
{"Action":"output","Package":"github.com/slipway-dev/slipway/broken","Output":"FAIL broken [build failed]\n"}
{"Action":"fail","Package":"github.com/slipway-dev/slipway/broken"}
`

func feed(t *testing.T, d *digest, text string, now time.Time) {
	t.Helper()
	events := make(chan event, 100)
	require.NoError(t, decode(strings.NewReader(text), events))
	close(events)
	for e := range events {
		d.event(e, now)
	}
}

func TestItSaysWhatItCameTo(t *testing.T) {
	var out strings.Builder
	now := time.Now()
	d := newDigest(&out, now)
	feed(t, d, printed, now.Add(2*time.Second))
	require.False(t, d.end(now.Add(3*time.Second)))
	require.Equal(t, `ok   good                                    1.5 s  1 passed, 1 skipped
--- the root TestBad
    x_test.go:9: it is bad
FAIL the root                                0.1 s  0 passed, 1 failed
undefined: x
--- broken 
FAIL broken [build failed]
FAIL broken                                  0.0 s  0 passed

failed: the root TestBad
failed: broken
FAIL: 1 tests passed, 2 failed, 1 skipped (1: needs root), in 3 s: 3 s compiling, good 2 s, the root 0 s, broken 0 s
`, out.String())
}

// A package whose tests failed may have printed more, in none of them.
func TestItShowsWhatNoTestPrinted(t *testing.T) {
	const failed = `{"Action":"start","Package":"github.com/slipway-dev/slipway"}
{"Action":"run","Package":"github.com/slipway-dev/slipway","Test":"TestBad"}
{"Action":"output","Package":"github.com/slipway-dev/slipway","Test":"TestBad","Output":"    x_test.go:9: it is bad\n"}
{"Action":"fail","Package":"github.com/slipway-dev/slipway","Test":"TestBad"}
`
	const end = `{"Action":"output","Package":"github.com/slipway-dev/slipway","Output":"FAIL\n"}
{"Action":"output","Package":"github.com/slipway-dev/slipway","Output":"exit status 2\n"}
{"Action":"output","Package":"github.com/slipway-dev/slipway","Output":"FAIL\tgithub.com/slipway-dev/slipway\t0.1s\n"}
{"Action":"fail","Package":"github.com/slipway-dev/slipway","Elapsed":0.1}
`
	const panics = `{"Action":"output","Package":"github.com/slipway-dev/slipway","Output":"panic: after all tests\n"}
`
	for printed, want := range map[string]string{
		failed + end:          "--- the root TestBad\n    x_test.go:9: it is bad\nFAIL the root                                0.1 s  0 passed, 1 failed\n",
		failed + panics + end: "--- the root TestBad\n    x_test.go:9: it is bad\n--- the root \npanic: after all tests\nFAIL\nexit status 2\nFAIL\tgithub.com/slipway-dev/slipway\t0.1s\nFAIL the root                                0.1 s  0 passed, 1 failed\n",
	} {
		var out strings.Builder
		now := time.Now()
		feed(t, newDigest(&out, now), printed, now)
		require.Equal(t, want, out.String())
	}
}

func TestItSaysWhatIsGoingOn(t *testing.T) {
	var out strings.Builder
	now := time.Now()
	d := newDigest(&out, now)
	d.tick(now.Add(4 * time.Second))
	require.Empty(t, out.String())
	d.tick(now.Add(5 * time.Second))
	feed(t, d, `{"Action":"start","Package":"github.com/slipway-dev/slipway/good"}
{"Action":"run","Package":"github.com/slipway-dev/slipway/good","Test":"TestPaused"}
{"Action":"pause","Package":"github.com/slipway-dev/slipway/good","Test":"TestPaused"}
{"Action":"run","Package":"github.com/slipway-dev/slipway/good","Test":"TestSlow"}
{"Action":"run","Package":"github.com/slipway-dev/slipway/good","Test":"TestSlow/case"}
`, now.Add(6*time.Second))
	d.tick(now.Add(9 * time.Second))
	d.tick(now.Add(10 * time.Second))
	require.Equal(t, "     ... 5 s: compiling\n     ... 10 s: good, 4 s: TestSlow/case\n", out.String())
}

func TestWhatTestedNothingIsNotWell(t *testing.T) {
	now := time.Now()
	require.False(t, newDigest(&strings.Builder{}, now).end(now))
}

func TestArgumentsAreSplitAtEachPlus(t *testing.T) {
	require.Equal(t, [][]string{{"-short", "./..."}, {"-C", "x", "."}}, groups([]string{"-short", "./...", "+", "-C", "x", "."}))
}
