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
)

const (
	thisImage  = "slipway.test/upgrade:1"
	olderImage = "slipway.test/upgrade:0"
)

// Two versions of nodeinit take turns on a node, back and forth again, beside two pods that
// stay and others that come and go. The configuration exists all the time, and each version
// reads what the other has recorded.
func TestPLAN11_UpgradeAndRollback(t *testing.T) {
	testns.SkipShort(t, "two minutes")
	begin(t)
	older := olderNodeinit(t)
	prepareCounting(t)
	for name, besides := range map[string][]image.File{
		thisImage: nil, olderImage: {{Path: "/usr/bin/nodeinit", Mode: 0o755, Content: older}},
	} {
		files, err := agentFiles(t.Context(), append(counted(t), besides...)...)
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

	count, watch := startCounting(t), watchConf(mainConf)
	address := pingPods(t)
	ping := startPing(t, address)
	startPods(t, address)
	morePods(t)
	for _, image := range []string{thisImage, olderImage, thisImage} {
		kubectl(t, "set", "image", "daemonset/"+d.name, d.init["name"].(string)+"="+image, "--namespace=kube-system")
		kubectl(t, "rollout", "status", "daemonset/"+d.name, "--namespace=kube-system", "--timeout=180s")
		bothRead()
		morePods(t)
	}
	endPods(t)
	looks, missing := watch.end()
	t.Logf("%d looks: missing %d times; %s", looks, missing, ping())
	require.Zero(t, missing)
	removePingPods(t)
	count.end(t)

	uninstallRest(t, d)
	nodeReady(t, "False")
	settles(t, before, "the node is as it was before", "var/lib/cni") // the store is the network's own plugin's
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
