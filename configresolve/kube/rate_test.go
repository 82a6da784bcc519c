// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/kube"
)

// limited returns a source over a server that answers as transport does, and the times of the
// requests, relative to the first.
func limited(t *testing.T, answer transport) (configresolve.Source, *[]time.Duration) {
	t.Helper()
	start := time.Now()
	var asked []time.Duration
	client, err := kube.Connection{
		Servers: []string{"http://a"}, QPS: 2, Burst: 3, Spread: time.Millisecond,
		Wrap: func(http.RoundTripper) http.RoundTripper {
			return roundTripper(func(req *http.Request) (*http.Response, error) {
				asked = append(asked, time.Since(start).Round(10*time.Millisecond))
				return answer(len(asked), req)
			})
		},
	}.Client()
	require.NoError(t, err)
	return mapOf(client), &asked
}

var paced = []time.Duration{0, 0, 0, 500 * time.Millisecond, time.Second, 1500 * time.Millisecond}

// Retries count too, whatever the spread.
func TestCFG14_NoMoreRequestsASecondThanAreSaid(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			source, asked := limited(t, func(n int, _ *http.Request) (*http.Response, error) {
				if fails && n < len(paced) {
					return respond(http.StatusServiceUnavailable, "")
				}
				return found()
			})
			for len(*asked) < len(paced) {
				_, err := source.Read(t.Context())
				require.NoError(t, err)
			}
			require.Equal(t, paced, *asked)
		})
	}
}

func TestCFG14_ALimitThatLeavesNoTimeIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, asked := limited(t, func(int, *http.Request) (*http.Response, error) { return found() })
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var err error
		for range len(paced) {
			if _, err = source.Read(ctx); err != nil {
				break
			}
		}
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "the rate limit leaves no time for another request")
		require.Len(t, *asked, 3)
	})
}
