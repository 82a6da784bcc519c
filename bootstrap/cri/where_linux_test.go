// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/bootstrap/cri/critest"
)

func TestCNIAsksARuntimeThatIsStartingAgain(t *testing.T) {
	h := newHost(t)
	_, err := cri.Endpoint{HostProc: h.proc}.CNI(t.Context())
	require.ErrorIs(t, err, cri.ErrNoRuntime)

	var asked atomic.Int64
	h.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) <= 3 {
			refuse(w, 2, "server is not initialized yet")
			return
		}
		critest.Runtime{Info: critest.Containerd(nil, "/etc/there", "/opt/there")}.ServeHTTP(w, r)
	}))
	got, err := cri.Endpoint{HostProc: h.proc}.CNI(t.Context())
	require.NoError(t, err)
	require.Equal(t, cri.CNI{PluginDirs: []string{"/opt/there"}, ConfDir: "/etc/there", MaxConfNum: 1}, got)
	require.EqualValues(t, 4, asked.Load())

	asked.Store(-1 << 30)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = cri.Endpoint{HostProc: h.proc}.CNI(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestCNISaysWhatDoesNotPass(t *testing.T) {
	for want, runtime := range map[string]http.Handler{
		"does not report where it looks": critest.Runtime{},
		"it has no CRI":                  noCRI,
	} {
		_, err := newHost(t).serve(runtime).CNI(t.Context())
		require.ErrorContains(t, err, want)
	}
}
