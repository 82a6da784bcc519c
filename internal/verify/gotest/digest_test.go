// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The output of go test -json for four packages, shortened.
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
{"Action":"fail","Package":"github.com/slipway-dev/slipway/late","Test":"TestBad"}
{"Action":"output","Package":"github.com/slipway-dev/slipway/late","Output":"panic: after all tests\n"}
{"Action":"output","Package":"github.com/slipway-dev/slipway/late","Output":"exit status 2\n"}
{"Action":"fail","Package":"github.com/slipway-dev/slipway/late","Elapsed":0.1}
`

// A package that fails may have printed more, in none of its tests: the last one panics after them.
func TestTheDigestSumsUpEachPackage(t *testing.T) {
	var out strings.Builder
	d := newDigest(&out)
	require.NoError(t, d.read(strings.NewReader(printed)))
	require.False(t, d.end(3*time.Second))
	require.Equal(t, `ok   good                                    1.5 s  1 passed, 0 failed, 1 skipped
--- the root TestBad
    x_test.go:9: it is bad
FAIL the root                                0.1 s  0 passed, 1 failed, 0 skipped
undefined: x
--- broken 
FAIL broken [build failed]
FAIL broken                                  0.0 s  0 passed, 0 failed, 0 skipped
--- late TestBad
--- late 
panic: after all tests
exit status 2
FAIL late                                    0.1 s  0 passed, 1 failed, 0 skipped

failed: the root TestBad
failed: broken
failed: late TestBad
FAIL: 1 tests passed, 3 failed, 1 skipped (1: needs root), in 3 s
`, out.String())
}

func TestARunWithoutTestsIsAFailure(t *testing.T) {
	require.False(t, newDigest(&strings.Builder{}).end(0))
}
