// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/cleanup/ownershipfile"
)

func TestOwnershipMoved(t *testing.T) {
	own := cleanup.Cilium().
		Moved("/etc/cni/net.d/", "/etc/kubernetes/cni").
		Moved("/var/run/cilium", "/host/run/cilium").
		Moved("/run/cilium", "/host/run/cilium").
		Moved("/opt/cni/bi", "/nowhere")
	require.Equal(t, []string{"/etc/kubernetes/cni/*.cilium_bak"}, own.SetAside)
	require.Equal(t, "/etc/kubernetes/cni/05-cilium.conflist", own.Files[0])
	require.Contains(t, own.Files, "/opt/cni/bin/cilium-cni", "whole elements only")
	require.Equal(t, []string{"/host/run/cilium", "/var/lib/cilium"}, own.StateDirs)
	require.Equal(t, []string{"/host/run/cilium/cilium.pid"}, own.PidFiles)
	require.Equal(t, []cleanup.MountRule{{Path: "/host/run/cilium/cgroupv2", Type: "cgroup2"}, {Path: "/host/run/cilium/bpffs", Type: "bpf"}}, own.Mounts)
	require.Equal(t, cleanup.Cilium(), cleanup.Cilium().Moved("/nowhere", "/else"), "and the original is its own")
}

// exampleOwnership is the content of a file of examples/ownership.
func exampleOwnership(t *testing.T, name string) cleanup.Ownership {
	t.Helper()
	content, err := os.ReadFile("../examples/ownership/" + name + ".yaml")
	require.NoError(t, err)
	own, err := ownershipfile.Parse(content)
	require.NoError(t, err)
	return own
}
