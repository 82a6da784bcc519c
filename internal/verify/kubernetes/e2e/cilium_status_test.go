// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build cilium

package e2e_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// With a configuration of CNI 1.1.0 and a runtime that asks plugins for their STATUS, the
// node is not ready while the real agent does not answer its plugin, although the
// configuration is there all the time.
func TestStatusOfCilium(t *testing.T) {
	withContainerd(t, newContainerd)
	begin(t)
	release := namedCilium(t)
	release.importImage(t)
	d := release.deployment(t, "cilium/one", "cni.customConf=true")
	d.flags("--cni-template=none", "--cni-version=1.1.0")
	d.base(t)
	for range 2 {
		applyObjects(t, d.daemonSet())
		d.agentReady(t)
		nodeReady(t, "True")
		pingEachOther(t)
		d.remove(t)
		nodeReady(t, "False")
		require.Contains(t, on(t, "cat /etc/cni/net.d/05-cilium.conflist"), `"cniVersion": "1.1.0"`)
		saysDaemonDown(t)
	}
	takeBack(t)
}

// saysDaemonDown waits for the plugin's reason in the node's condition. Without an agent
// Cilium's plugin answers after half a minute, for which the runtime does not answer
// either, and the kubelet takes turns in saying that and the reason.
func saysDaemonDown(t *testing.T) {
	t.Helper()
	said := map[string]bool{}
	require.Eventually(t, func() bool {
		message := kubectl(t, "get", "nodes", `--output=jsonpath={.items[*].status.conditions[?(@.type=="Ready")].message}`)
		said[message] = true
		return strings.Contains(message, "DaemonDown")
	}, 3*time.Minute, time.Second)
	t.Log(slices.Collect(maps.Keys(said)))
	nodeReady(t, "False")
}
