// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/snapshot"
)

// The folders of a real node.
const nodeConf, nodeBin = "/etc/cni/net.d", "/opt/cni/bin"

// nodeFile is a file of a node, or a symbolic link.
type nodeFile struct {
	path, content, link string
	mode                os.FileMode
	owner               int
}

func (f nodeFile) put(t *testing.T) {
	require.NoError(t, os.MkdirAll(filepath.Dir(f.path), 0o755))
	if f.link != "" {
		require.NoError(t, os.Symlink(f.link, f.path))
	} else {
		require.NoError(t, os.WriteFile(f.path, []byte(f.content), f.mode))
		require.NoError(t, os.Chmod(f.path, f.mode))
	}
	require.NoError(t, os.Lchown(f.path, f.owner, f.owner))
}

var (
	oldPlugin = nodeFile{path: nodeBin + "/cilium-cni", content: strings.Repeat("old", 5000), mode: 0o755}
	ownLo     = nodeFile{path: nodeBin + "/loopback", content: script("1.0.0"), mode: 0o755} // of the other CNIs
	flannel   = nodeFile{path: nodeConf + "/10-flannel.conflist", content: `{"name":"cbr0","cniVersion":"0.3.1","plugins":[{"type":"flannel"}]}`, mode: 0o644}
	multus    = nodeFile{path: nodeConf + "/00-multus.conf", content: `{"name":"multus","cniVersion":"0.3.1","type":"multus"}`, mode: 0o600, owner: 4711}
)

// startingPoints are states in which nodes are found.
func startingPoints() map[string]startingPoint {
	ours := nodeConf + "/05-cilium.conflist"
	const chained = `{"cniVersion":"0.3.1","name":"generic-veth","plugins":[{"type":"flannel","mtu":1500},{"type":"cilium-cni","chaining-mode":"generic-veth"}]}`
	return map[string]startingPoint{
		"clean":          {},
		"two other CNIs": {files: []nodeFile{flannel, multus, ownLo, {path: nodeBin + "/flannel", content: script("0.3.1", "1.0.0"), mode: 0o755}}},
		"a chained one": {files: []nodeFile{{path: ours, content: chained, mode: 0o600}, flannel, oldPlugin, ownLo,
			{path: nodeBin + "/flannel", content: script("0.3.1", "1.0.0"), mode: 0o755}}},
		"an earlier backup with our suffix": {files: []nodeFile{flannel, multus, ownLo,
			{path: flannel.path + ".cilium_bak", content: "an earlier one", mode: 0o640, owner: 12},
			{path: multus.path + ".cilium_bak", link: "nowhere"},
			{path: nodeConf + "/20-gone.conf.cilium_bak", content: "of one that is gone", mode: 0o600}}},
		"0644 of ours from an older version": {files: []nodeFile{flannel, oldPlugin, ownLo,
			{path: ours, content: `{"name":"cilium","cniVersion":"0.2.0","plugins":[{"type":"cilium-cni"}]}`, mode: 0o644},
			{path: nodeConf + "/05-cilium.conf", content: `{"name":"cilium","cniVersion":"0.2.0","type":"cilium-cni"}`, mode: 0o644}}},
		"a read-only folder with the plugins baked in": {readOnly: true, files: []nodeFile{flannel,
			{path: nodeBin + "/cilium-cni", content: script("0.3.1", "0.4.0", "1.0.0"), mode: 0o555},
			{path: nodeBin + "/flannel", content: script("0.3.1", "1.0.0"), mode: 0o555},
			{path: nodeBin + "/loopback", content: "the image's", mode: 0o555}}},
		"ours is a link": {files: []nodeFile{{path: ours, link: "10-flannel.conflist"}, flannel,
			{path: nodeBin + "/loopback", link: "/usr/bin/true"}}},
	}
}

type startingPoint struct {
	files    []nodeFile
	readOnly bool
}

func (s startingPoint) set(t *testing.T) {
	require.NoError(t, os.MkdirAll("/var/lib", 0o755))
	for _, f := range s.files {
		f.put(t)
	}
}

// lookAt describes the whole node.
func lookAt(t *testing.T) snapshot.Snapshot {
	s := snapshot.Snapshot{}
	require.NoError(t, s.Node())
	require.NotEmpty(t, s)
	return s
}

// Whatever the node is like and whatever is installed, an uninstall leaves the node as it found
// it: files with content, mode and owner, mounts, and values. In between comes an upgrade, or
// activity of the other CNI.
func TestCNI5_CNI8_NodeIsAsBefore(t *testing.T) {
	for name, start := range startingPoints() {
		for _, exclusive := range []bool{false, true} {
			for config, c := range map[string]cniinstall.Config{
				"alone": agentOf(cniinstall.Agent{}), "chained": chainedOf(cniinstall.Chained{Target: "cbr0"}),
			} {
				if config == "chained" && !start.has(nodeBin+"/flannel") {
					continue
				}
				if exclusive {
					config += ", exclusive"
				}
				t.Run(name+", "+config, func(t *testing.T) {
					n := newNode(t)
					i := n.install()
					i.BinDir, i.ConfDir = "", "" // the node's defaults
					i.Config, i.Exclusive = c, exclusive
					testAsBefore(t, n, start, i)
				})
			}
		}
	}
}

func (s startingPoint) has(path string) bool {
	return slices.ContainsFunc(s.files, func(f nodeFile) bool { return f.path == path })
}

// testAsBefore installs twice from a container onto a throw-away node, and uninstalls.
func testAsBefore(t *testing.T, n node, start startingPoint, i recorded) {
	host := bootstraptest.NewNode(t)
	on := func(f func()) {
		t.Helper()
		require.NoError(t, host.Do(t.Context(), func(context.Context) error { f(); return nil }))
	}
	var before snapshot.Snapshot
	on(func() { start.set(t) })
	if start.readOnly {
		out, err := host.Command("sh", "-c", "mount --bind "+nodeBin+" "+nodeBin+" && mount -o remount,ro,bind "+nodeBin).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	on(func() {
		if start.readOnly {
			require.ErrorIs(t, os.WriteFile(nodeBin+"/x", nil, 0o600), unix.EROFS)
		}
		before = lookAt(t)
	})

	_, err := planOn(t, host, "", i).Apply(t.Context())
	require.NoError(t, err)
	on(func() {
		changed := before.Diff(lookAt(t))
		require.NotEmpty(t, changed, "the install changed something")
		requireContentOfOurs(t)
	})
	report, err := planOn(t, host, "", i).Check(t.Context())
	require.NoError(t, err)
	require.False(t, report.Changed(), report)

	if !start.readOnly {
		n.source("cilium-cni", script("0.3.1", "1.0.0")) // an upgrade
	}
	next := planOn(t, host, "the next pod", i)
	_, err = next.Apply(t.Context())
	require.NoError(t, err)
	_, err = next.RevertAll(t.Context())
	require.NoError(t, err)
	on(func() { require.Empty(t, before.Diff(lookAt(t))) })
}

// planOn is a plan that installs on the host and keeps its journal there.
func planOn(t *testing.T, host *bootstraptest.Node, owner string, i recorded) *bootstrap.Plan {
	t.Helper()
	return &bootstrap.Plan{
		Host:   hostns.Host{Proc: host.Proc(), LockFile: filepath.Join(t.TempDir(), "lock")},
		Ledger: &ledger.Ledger{Agent: "agent", Owner: owner, NoOwner: owner == "", Kinds: cniinstall.Kinds()},
		Steps:  []bootstrap.Step{{Name: "test", Wants: i.Install}},
	}
}

func requireContentOfOurs(t *testing.T) {
	info, err := os.Lstat(nodeConf + "/05-cilium.conflist")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
}
