// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/cri"
)

// A missing answer must not count as an empty list.
func TestNoListOfSandboxesIsAnError(t *testing.T) {
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"no ID":     {answer("\x0a\x02\x18\x01"), "a sandbox has no ID"},
		"cut off":   {answer("\x0a\x05\x0a\x03a"), "it is not a protobuf message of the CRI"},
		"too large": {grpc("\x00\x01\x00\x00\x01"), "it has 16777217 bytes, more than 16777216"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			ids, err := h.serve(tc.handler).SandboxIDs(t.Context())
			require.ErrorContains(t, err, tc.want)
			require.ErrorContains(t, err, `ask the container runtime at "/run/containerd/containerd.sock" for its sandboxes: `)
			require.Nil(t, ids)
		})
	}
	_, err := cri.Endpoint{HostProc: newHost(t).proc}.SandboxIDs(t.Context())
	require.ErrorIs(t, err, cri.ErrNoRuntime)
}
