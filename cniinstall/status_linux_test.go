// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cniinstall"
)

// For an installed configuration of version 1.1.0 or later, libcni runs the plugin's STATUS
// command and gets its answer; for an older one it does not.
func TestCNI11_LibcniAsksForTheStatus(t *testing.T) {
	n := newNode(t)
	asked, down := filepath.Join(n.root, "asked"), filepath.Join(n.root, "down")
	n.source("cilium-cni", strings.Replace(script("0.3.1", "1.0.0", "1.1.0"), "\n", "\n"+`if [ "$CNI_COMMAND" = STATUS ]; then
	cat >`+asked+`
	[ -e `+down+` ] || exit 0
	echo '{"cniVersion":"1.1.0","code":50,"msg":"DaemonDown","details":"unable to connect to the agent"}'
	exit 1
fi
`, 1))
	write(t, down, "", 0o644)
	status := func(version string) error {
		i := n.install()
		i.Config = agentOf(cniinstall.Agent{CNIVersion: version})
		require.NoError(t, i.Apply(t.Context()))
		list, err := libcni.NetworkConfFromFile(n.confFile())
		require.NoError(t, err)
		return libcni.NewCNIConfig([]string{n.bin}, nil).GetStatusNetworkList(t.Context(), list)
	}
	for _, version := range []string{"0.3.1", "", "1.0.0"} {
		require.NoError(t, status(version))
		require.NoFileExists(t, asked)
	}
	var said *types.Error
	require.ErrorAs(t, status("1.1.0"), &said)
	require.Equal(t, types.Error{Code: 50, Msg: "DaemonDown", Details: "unable to connect to the agent"}, *said)
	raw, err := os.ReadFile(asked)
	require.NoError(t, err)
	require.JSONEq(t, `{"cniVersion":"1.1.0","name":"cilium","type":"cilium-cni","enable-debug":false,"log-file":"/var/run/cilium/cilium-cni.log"}`, string(raw))
	require.NoError(t, os.Remove(down))
	require.NoError(t, status("1.1.0"))
}
