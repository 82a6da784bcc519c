// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/snapshot"
	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/image"
	"github.com/slipway-dev/slipway/internal/verify/programs"
)

const (
	thisImage  = "slipway.test/upgrade:1"
	olderImage = "slipway.test/upgrade:0"
)

// importVersions gives the node an agent of this version and an older one, whose plugins
// are counted. What the older one has besides takes the place of this one's.
func importVersions(t *testing.T, older ...image.File) {
	t.Helper()
	prepareCounting(t)
	for name, besides := range map[string][]image.File{thisImage: nil, olderImage: older} {
		files, err := agentFiles(t.Context(), append(counted(t), besides...)...)
		require.NoError(t, err)
		require.NoError(t, node.Import(t.Context(), name, []string{"/bin/sh"}, files...))
	}
}

// becomes rolls the agent to another image, and waits until the newer pod is ready.
func (d *deployment) becomes(t *testing.T, image string) {
	t.Helper()
	kubectl(t, "set", "image", "daemonset/"+d.name, d.init["name"].(string)+"="+image, "--namespace=kube-system")
	kubectl(t, "rollout", "status", "daemonset/"+d.name, "--namespace=kube-system", "--timeout=180s")
}

// Two versions of nodeinit take turns on a node, and read what the other has recorded.
func TestPLAN11_UpgradeAndRollback(t *testing.T) {
	testns.SkipShort(t, "two minutes")
	begin(t)
	older := olderNodeinit(t)
	importVersions(t, image.File{Path: "/usr/bin/nodeinit", Mode: 0o755, Content: older})
	const olderPath = "/run/e2e/nodeinit-older"
	require.NoError(t, os.WriteFile(filepath.Join(node.Root(), olderPath), older, 0o755))

	d := agent(t)
	d.init["image"] = olderImage
	before := prepared(t)
	upgradeAndRollback(t, d, []string{"05-e2e.conflist"}, func(string) {
		require.Equal(t, recorded(t, olderPath), recorded(t, "/run/nodeinit"), "each version reads what the other one has recorded")
	})
	d.remove(t)
	uninstaller(t).uninstall(t)
	nodeReady(t, "False")
	settles(t, before, "the node is as it was before", "var/lib/cni") // the store is the network's own plugin's
}

// The older plan of an agent has a plugin more, which its configuration names, and that has
// another name: it sorts before the newer one's.
func TestPLAN11_UpgradeAndRollbackOfAPlan(t *testing.T) {
	testns.SkipShort(t, "two minutes")
	begin(t)
	const plugin, olderConf, thisConf = "former-plugin", "05-former.conflist", "10-slipway-agent.conflist"
	importVersions(t, olderPlan(t, plugin, olderConf)...)
	names := map[string]string{olderImage: olderConf, thisImage: thisConf}

	d := embedding(t)
	d.init["image"] = olderImage
	before := prepared(t)
	upgradeAndRollback(t, d, []string{olderConf, thisConf}, func(image string) {
		require.Equal(t, names[image]+"\n", on(t, "cd /etc/cni/net.d && ls *.conflist"), "what the plan no longer has goes")
		require.FileExists(t, filepath.Join(node.Root(), "opt/cni/bin", plugin), "pods of the older version need it")
	})
	kubectl(t, "rollout", "restart", "daemonset/"+d.name, "--namespace=kube-system")
	kubectl(t, "rollout", "status", "daemonset/"+d.name, "--namespace=kube-system", "--timeout=180s")
	require.NoFileExists(t, filepath.Join(node.Root(), "opt/cni/bin", plugin), "no pod needs it any more")
	d.remove(t) // it undoes everything itself
	nodeReady(t, "False")
	settles(t, before, "the node is as it was before", "var/lib/cni")
}

// olderPlan is the agent's program with an older plan, and the plugin that it has more.
func olderPlan(t *testing.T, plugin, conf string) []image.File {
	t.Helper()
	const source = "examples/agent/cni.go"
	text, err := os.ReadFile(filepath.Join("../../../..", source))
	require.NoError(t, err)
	changed := string(text)
	for _, change := range [][2]string{
		{`"10-slipway-agent.conflist"`, `"` + conf + `"`},
		{`"portmap", "loopback"}`, `"portmap", "loopback", "` + plugin + `"}`},
		{`[]object{main, portmap}`, `[]object{main, portmap, {"type": "` + plugin + `", "sysctl": object{"net.core.somaxconn": "501"}}}`},
	} {
		require.Equal(t, 1, strings.Count(changed, change[0]), change[0])
		changed = strings.Replace(changed, change[0], change[1], 1)
	}
	path, err := programs.Program{Package: "./examples/agent", Added: map[string]string{source: changed}}.Build(t.Context())
	require.NoError(t, err)
	program, err := os.ReadFile(path)
	require.NoError(t, err)
	files, err := node.Plugins("/cni", "tuning")
	require.NoError(t, err)
	files[0].Path = "/cni/" + plugin
	return append(files, image.File{Path: "/agent", Mode: 0o755, Content: program})
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

// upgradeAndRollback rolls an agent of the older image to this one, back and forth again,
// beside two pods that stay and others that come and go. One of the configurations exists
// all the time; checked is called after each change.
func upgradeAndRollback(t *testing.T, d *deployment, confs []string, checked func(image string)) {
	t.Helper()
	d.apply(t)
	d.ready(t)
	nodeReady(t, "True")
	checked(olderImage)

	count, watch := startCounting(t), watchConf(confs...)
	address := pingPods(t)
	ping := startPing(t, address)
	startPods(t, address)
	morePods(t)
	for _, image := range []string{thisImage, olderImage, thisImage} {
		d.becomes(t, image)
		checked(image)
		morePods(t)
	}
	endPods(t)
	looks, missing := watch.end()
	t.Logf("%d looks: missing %d times; %s", looks, missing, ping())
	require.Zero(t, missing)
	removePingPods(t)
	count.end(t)
}

// recorded returns the records that a version of nodeinit reads in the node's journal. An
// older one may not distinguish objects found as wanted from changed ones.
func recorded(t *testing.T, nodeinit string) (all []string) {
	t.Helper()
	var read struct{ Entries, Found []journal.Entry }
	require.NoError(t, json.Unmarshal([]byte(on(t, nodeinit+" journal --output=json")), &read))
	for _, e := range append(read.Entries, read.Found...) {
		require.True(t, e.Done, e.Object)
		all = append(all, e.Step+" "+e.Kind+" "+e.Object)
	}
	require.NotEmpty(t, all)
	slices.Sort(all)
	return all
}
