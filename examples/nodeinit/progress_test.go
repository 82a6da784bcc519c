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

// status tells ages as people do: in one unit, rounded down.
func TestPLAN6_TheJournalTellsAges(t *testing.T) {
	for says, ago := range map[string]time.Duration{
		"just now": 0, "1 minute ago": 65 * time.Second, "23 minutes ago": 23*time.Minute + 5*time.Second, "1 hour ago": 100 * time.Minute,
		"11 hours ago": 11*time.Hour + 5*time.Minute, "1 day ago": 30 * time.Hour, "400 days ago": 400*24*time.Hour + time.Hour,
	} {
		require.Equal(t, says, age(time.Now().Add(-ago)))
	}
	require.Equal(t, "never", age(time.Time{}))
	require.Regexp(t, `^20\S+Z, by a clock that is ahead$`, age(time.Now().Add(time.Hour)))
}
