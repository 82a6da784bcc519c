// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheLastLineOfManyErrorsFitsAPodsStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		errs []error
		last string
	}{
		"one":         {[]error{errors.New("no ConfigMap")}, "nodeinit: no ConfigMap"},
		"a few":       {[]error{errors.New("first"), errors.New("second")}, "nodeinit: second"},
		"many":        {many(100), "nodeinit: failed; the whole error is above, and begins with: reason 0 with a text that takes room"},
		"one, longer": {[]error{errors.New(strings.Repeat("ä", 4000))}, "nodeinit: failed; the whole error is above, and begins with: " + strings.Repeat("ä", 512) + "..."},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			a := &app{stderr: &stderr}
			a.printError(errors.Join(tc.errs...))
			text := strings.TrimSuffix(stderr.String(), "\n")
			require.Equal(t, tc.last, text[strings.LastIndex(text, "\n")+1:])
			require.Less(t, len(tc.last), fitsStatus)
		})
	}
}

func many(n int) (errs []error) {
	for i := range n {
		errs = append(errs, fmt.Errorf("reason %d with a text that takes room", i))
	}
	return errs
}

func TestStatusTellsAges(t *testing.T) {
	for says, ago := range map[string]time.Duration{
		"just now": 0, "1m ago": 65 * time.Second, "1h40m ago": 100 * time.Minute, "30h ago": 30 * time.Hour, "400 days ago": 400*24*time.Hour + time.Hour,
	} {
		require.Equal(t, says, age(time.Now().Add(-ago)))
	}
	require.Equal(t, "never", age(time.Time{}))
}

func TestALookTellsWhatTheLastDidNotSay(t *testing.T) {
	const logged = "time=2026-01-02T03:04:0%d.5Z level=WARN msg=x\n"
	for name, texts := range map[string][3]string{ // the second has no news, of the third they are the last lines
		"steps": {"  cni    failed  1.5ms\n  bpffs  unchanged  870µs  a\n      b\n2 steps (1.2s)\n", "  cni    failed   12ms\n  bpffs  unchanged  1ms  a\n      b\n2 steps (1m2s)\n",
			"  cni    failed  1ms\n2 steps (9s)\n  bpffs  unchanged  1ms  a\n      c\n"},
		"JSON": {"{\n  \"start\": \"2026\",\n  \"elapsedMs\": 1.5\n}\n", "{\n  \"start\": \"2027\",\n  \"elapsedMs\": 2\n}\n", "{\n  \"start\": \"2028\",\n  \"x\": 2\n}\n"},
		"a difference": {"  cni    would-change  1ms  replace file /a\n--- /a\n+++ /a\n@@ -1 +1 @@\n-x\n+y\n", "  cni    would-change  2ms  replace file /a\n--- /a\n+++ /a\n@@ -1 +1 @@\n-x\n+y\n",
			"  cni    would-change  1ms  replace file /a\n--- /a\n+++ /a\n@@ -1 +1 @@\n-x\n+z\n"},
		"a log": {fmt.Sprintf(logged, 1), fmt.Sprintf(logged, 2), fmt.Sprintf(logged, 3) + "time=1 level=WARN msg=y\n"},
	} {
		var l lastSaid
		whole := name == "JSON" || name == "a difference"
		require.Equal(t, texts[0], l.news(texts[0], whole), name)
		require.Empty(t, l.news(texts[1], whole), name)
		news := l.news(texts[2], whole)
		require.NotEmpty(t, news, name)
		require.True(t, strings.HasSuffix(texts[2], news), "%s: %s", name, news)
		require.Equal(t, whole, news == texts[2], name)
	}
}
