// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/cri"
)

func TestCNI11_WhichRuntimesCallStatus(t *testing.T) {
	for _, r := range []cri.Runtime{
		{"containerd", "v2.0.1"}, {"containerd", "2.1.4"}, {"containerd", "v2.0.2-rc.0"}, {"containerd", "v3.0.0"}, {"containerd", "2.1.4~ds1-1+b2"},
		{"containerd", "v2.1.0-rc.1"}, {"containerd", "v2.1.4-k3s1"}, {"cri-o", "1.32.0"}, {"cri-o", "1.34.2"},
	} {
		require.NoError(t, r.CallsStatus(), r.String())
	}
	for _, r := range []cri.Runtime{
		{"containerd", "v2.0.0"}, {"containerd", "v2.0.1-rc.0"}, {"containerd", "2.0.1~rc1"}, {"containerd", "1.7.27"}, {"containerd", "1.6.20~ds1"},
		{"cri-o", "1.31.13"}, {"cri-o", "1.32.0-dev"}, {"cri-o", "1.29.1"},
		{"containerd", ""}, {"containerd", "v2"}, {"containerd", "v2.1"}, {"containerd", "unknown"}, {"containerd", "2.-1.4"}, {"containerd", "v99999999999999999999.0.0"},
		{"docker", "28.0.0"}, {"", ""}, {"Containerd", "v2.1.4"},
	} {
		require.ErrorIs(t, r.CallsStatus(), errors.ErrUnsupported, r.String())
	}
	err := cri.Runtime{Name: "containerd", Version: "1.7.27"}.CallsStatus()
	require.ErrorContains(t, err, `"containerd 1.7.27" does not call STATUS of CNI 1.1.0, which it does since 2.0.1`)
	err = cri.Runtime{Name: "docker\x1b[31m", Version: "28"}.CallsStatus()
	require.ErrorContains(t, err, `"docker\x1b[31m 28"`)
}
