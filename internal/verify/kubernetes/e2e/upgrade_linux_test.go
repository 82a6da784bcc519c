// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
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
	return records(t, []byte(on(t, nodeinit+" status --output=json")))
}

// records returns those that a status tells.
func records(t *testing.T, status []byte) (all []string) {
	t.Helper()
	var read struct {
		Records []struct {
			ID     string
			Begun  bool
			Claims []ledger.Claim
		}
	}
	require.NoError(t, json.Unmarshal(status, &read))
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

// Two agents share the records of a node on which each run is of this version or of the older one. Both
// versions read what either has recorded, find each agent as it was applied, and undo one of them
// without a loss for the other. It needs no cluster.
func TestPLAN11_PLAN14_TwoVersionsAndTwoAgentsTakeTurns(t *testing.T) {
	testns.Root(t)
	newer, err := build(t.Context(), "examples/nodeinit")
	require.NoError(t, err)
	work, programs := t.TempDir(), [][]byte{olderNodeinit(t), newer}
	versions := []string{filepath.Join(work, "older"), filepath.Join(work, "newer")}
	for i, version := range versions {
		require.NoError(t, os.WriteFile(version, programs[i], 0o755))
	}
	flags := map[string][]string{}
	for _, agent := range []string{"first", "second"} {
		conf, plugins := filepath.Join(work, agent+".conflist"), filepath.Join(work, agent)
		require.NoError(t, os.Mkdir(plugins, 0o755))
		for _, name := range []string{agent, "loopback"} { // which both bring
			require.NoError(t, os.WriteFile(filepath.Join(plugins, name), []byte("#!/bin/sh\necho '{\"cniVersion\":\"1.0.0\",\"supportedVersions\":[\"1.0.0\"]}'\n"), 0o755))
		}
		require.NoError(t, os.WriteFile(conf, []byte(`{"cniVersion":"1.0.0","name":"`+agent+`","plugins":[{"type":"`+agent+`"}]}`), 0o644))
		flags[agent] = []string{"--agent=" + agent, "--only=host-paths,sysctl,bpffs,cni", "--cni-conf=" + conf, "--plugins=" + plugins,
			"--sysctl-config-file=90-" + agent + ".conf", "--sysctl=net.ipv4.ip_forward=1", "--sysctl=net.ipv4.conf.lo.log_martians=1"}
	}
	for turn := range 16 {
		by := func(bit int) string { return versions[turn>>bit&1] } // one of the versions, by the turn's number
		other := func(bit int) string { return versions[1-turn>>bit&1] }
		t.Run(fmt.Sprintf("%04b", turn), func(t *testing.T) {
			n, before, after := bootstraptest.NewNode(t), snapshot.Snapshot{}, snapshot.Snapshot{}
			run := func(version, command string, more ...string) []byte {
				t.Helper()
				out, err := n.Command(version, append([]string{command}, more...)...).CombinedOutput()
				require.NoError(t, err, "%s %s: %s", filepath.Base(version), command, out)
				return out
			}
			bothFind := func(release string, agents ...string) {
				t.Helper()
				require.Equal(t, records(t, run(versions[0], "status", "--output=json")), records(t, run(versions[1], "status", "--output=json")))
				for _, version := range versions {
					for _, agent := range agents {
						run(version, "check", append(flags[agent], "--owner="+agent+release, "--cni-conf-name="+release+agent+".conflist")...)
					}
				}
			}
			applies := func(version, release, agent string) {
				t.Helper()
				run(version, "apply", append(flags[agent], "--owner="+agent+release, "--cni-conf-name="+release+agent+".conflist")...)
			}
			look := func(s snapshot.Snapshot) {
				require.NoError(t, n.Do(t.Context(), func(context.Context) error { return s.Node() }))
				delete(s, "file /run/slipway.lock")
			}
			require.NoError(t, n.Do(t.Context(), func(context.Context) error { return os.WriteFile("/run/xtables.lock", nil, 0o600) }))
			look(before)
			applies(by(0), "1", "first")
			applies(other(0), "1", "second")
			bothFind("1", "first", "second")
			applies(by(1), "2", "second") // another pod, with another name of its configuration
			applies(other(1), "2", "first")
			bothFind("2", "first", "second")
			run(by(2), "uninstall", "--agent=first", "--any-owner")
			bothFind("2", "second")
			run(by(3), "uninstall", "--agent=second", "--any-owner")
			look(after)
			require.Empty(t, before.Diff(after))
		})
	}
}
