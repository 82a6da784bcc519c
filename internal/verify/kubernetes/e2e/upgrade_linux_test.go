// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/snapshot"
	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/image"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/e2e/cluster"
)

const (
	thisImage  = "slipway.test/upgrade:1"
	olderImage = "slipway.test/upgrade:0"
)

// Two versions of nodeinit take turns on a node, back and forth again, beside two pods that
// stay and others that come and go, of which the runtime refuses nothing. The configuration
// exists all the time, the node stays ready, and each version reads what the other has recorded.
func TestPLAN11_UpgradeAndRollback(t *testing.T) {
	testns.SkipShort(t, "a minute")
	begin(t)
	older := olderNodeinit(t)
	for name, besides := range map[string][]image.File{
		thisImage: nil, olderImage: {{Path: "/usr/bin/nodeinit", Mode: 0o755, Content: older}},
	} {
		files, err := agentFiles(t.Context(), besides...)
		require.NoError(t, err)
		require.NoError(t, node.Import(t.Context(), name, []string{"/bin/sh"}, files...))
	}
	const olderPath = "/run/e2e/nodeinit-older"
	require.NoError(t, os.WriteFile(filepath.Join(node.Root(), olderPath), older, 0o755))
	bothRead := func() {
		t.Helper()
		require.Equal(t, recorded(t, olderPath), recorded(t, "/run/nodeinit"))
	}

	before := prepared(t)
	d := agent(t)
	d.init["image"] = olderImage
	d.apply(t)
	d.ready(t)
	nodeReady(t, "True")
	bothRead()

	since, watch := readySince(t), watchConf(mainConf)
	refused := on(t, refusals)
	address := pingPods(t)
	ping := startPing(t, address)
	for _, image := range []string{thisImage, olderImage, thisImage} {
		kubectl(t, "set", "image", "daemonset/"+d.name, d.init["name"].(string)+"="+image, "--namespace=kube-system")
		d.ready(t)
		bothRead()
		podOn(t, "comes", cluster.NodeName)
		reaches(t, "comes", address)
		removePod(t, "comes")
	}
	looks, missing := watch()
	t.Logf("%d looks: missing %d times; %s", looks, missing, ping())
	require.Zero(t, missing)
	removePingPods(t)
	require.Equal(t, since, readySince(t), "the node was ready all the time")
	require.Equal(t, refused, on(t, refusals))
	require.Empty(t, on(t, "ls /var/lib/cni/networks/e2e | grep ^10 || true"), "each pod is disconnected")

	uninstallRest(t, d)
	nodeReady(t, "False")
	settles(t, before, "the node is as it was before", "var/lib/cni") // the store is the network's own plugin's
}

// refusals counts the sandboxes that the runtime could not make or stop.
const refusals = "grep -c 'level=error.*PodSandbox for ' /var/log/e2e/containerd.log || true"

// readySince returns the last time that the node became ready.
func readySince(t *testing.T) string {
	t.Helper()
	return kubectl(t, "get", "nodes", `--output=jsonpath={.items[*].status.conditions[?(@.type=="Ready")]['status','lastTransitionTime']}`)
}

// prepared is a node without a network, before agents come.
func prepared(t *testing.T) snapshot.Snapshot {
	t.Helper()
	on(t, natTable)
	on(t, script(t, "foreign.sh"))
	look(t) // looking for rules makes the kernel's tables
	nodeReady(t, "False")
	return look(t)
}

// recorded returns the records that a version of nodeinit reads on the node.
func recorded(t *testing.T, nodeinit string) (all []string) {
	t.Helper()
	var read struct {
		Records []struct {
			ID     string
			Begun  bool
			Claims []ledger.Claim
		}
	}
	require.NoError(t, json.Unmarshal([]byte(on(t, nodeinit+" status --output=json")), &read))
	for _, r := range read.Records {
		require.False(t, r.Begun, r.ID)
		for _, c := range r.Claims {
			all = append(all, c.Agent+" "+c.Step+" "+r.ID)
		}
	}
	require.NotEmpty(t, all)
	slices.Sort(all)
	return all
}
