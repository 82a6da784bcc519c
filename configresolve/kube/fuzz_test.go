// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
)

// Any answer of a server yields a configuration or an error.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cfg","namespace":"kube-system"},"data":{"a":"1"}}`,
		`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"me","labels":{"config.cilium.io/node":"1"}}}`,
		`{"apiVersion":"cilium.io/v2","kind":"CiliumNodeConfigList","metadata":{"continue":"x"},"items":[{"apiVersion":"cilium.io/v2","kind":"CiliumNodeConfig","metadata":{"name":"x","namespace":"kube-system"},"spec":{"nodeSelector":{"matchExpressions":[{"key":"a","operator":"In","values":["b"]}]},"defaults":{"cr":"1"}}}]}`,
		`{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Expired","code":410}`,
		`{"items":[{}]}`, `{"data":{"a":1}}`, `{"data":[]}`, `null`, `[]`, `{`, "",
	} {
		for _, status := range []int{200, 404, 410, 415} {
			f.Add(seed, status)
		}
	}
	f.Fuzz(func(t *testing.T, body string, status int) {
		if status < 200 || status > 499 || status == 429 {
			status = 200 // other statuses are retried after a pause
		}
		client := clientOf(t, roundTripper(func(*http.Request) (*http.Response, error) { return respond(status, body) }))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		for _, source := range threeSources(client) {
			layers, err := source.Read(ctx)
			require.True(t, err == nil || len(layers) == 0)
			if err != nil {
				require.NotEmpty(t, err.Error())
				continue
			}
			_, err = configresolve.Resolve(t.Context(), configresolve.Static("s", values{}))
			require.NoError(t, err)
		}
	})
}
