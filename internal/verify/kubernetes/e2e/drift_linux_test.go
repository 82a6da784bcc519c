// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/testns"
)

// The DaemonSet that watches for drift, as it is shipped but for its interval: it says on
// the Node what has drifted, with the rights that it has, and changes nothing.
func TestRDY5_ADaemonSetWatchesForDrift(t *testing.T) {
	testns.SkipShort(t, "a minute")
	begin(t)
	before := prepared(t)
	d := withComponent(t, "nodeinit.yaml", "report").standIn()
	d.apply(t)
	d.ready(t)
	watch := load(t, "drift.yaml")
	watch.flags(ownNetwork...)
	watch.flags("--every=1s")
	watch.apply(t)
	watch.ready(t)
	says := func(status, reason string) {
		t.Helper()
		kubectl(t, "wait", "node", "--all", "--for=condition=SlipwayCiliumReady="+status, "--timeout=60s")
		require.Equal(t, reason, kubectl(t, "get", "nodes", `--output=jsonpath={.items[*].status.conditions[?(@.type=="SlipwayCiliumReady")].reason}`))
	}
	says("True", "Ready")
	on(t, "rm /opt/cni/bin/portmap")
	says("False", "Drifted")
	require.NoFileExists(t, node.Root()+"/opt/cni/bin/portmap")
	kubectl(t, "delete", "pods", "--selector=app=agent", "--namespace=kube-system")
	says("True", "Ready")

	watch.remove(t)
	d.remove(t)
	uninstaller(t).uninstall(t)
	nodeReady(t, "False")
	settles(t, before, "the node is as it was before", "var/lib/cni")
}
