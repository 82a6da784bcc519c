// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/code"
)

// auto is the agent's installation, using the directories that a runtime reports.
func (n node) auto(r cri.CNI, asked ...error) recorded {
	n.t.Helper()
	i := n.install()
	i.BinDir, i.ConfDir = "", ""
	i, err := i.resolveDirs(n.t.Context(), r, errors.Join(asked...))
	require.NoError(n.t, err)
	return i
}

// at is a runtime that looks in directories below a place on the node.
func (n node) at(place string) cri.CNI {
	return cri.CNI{PluginDirs: []string{filepath.Join(n.root, place, "bin")}, ConfDir: filepath.Join(n.root, place, "net.d")}
}

func TestResolveDirsGivenDirectoriesStay(t *testing.T) {
	n := newNode(t)
	r := n.at("k3s")
	i := n.install()
	i.Remedy = "give others"
	i, err := i.resolveDirs(t.Context(), r, nil)
	require.NoError(t, err)
	require.Equal(t, []string{n.bin, n.conf}, []string{i.BinDir, i.ConfDir})
	requireApplied(t, i, n.root)
	require.Equal(t, []string{
		`the container runtime looks for plugins in ["` + r.PluginDirs[0] + `"], not in "` + n.bin + `" (give others)`,
		`the container runtime reads configurations in "` + r.ConfDir + `", not in "` + n.conf + `" (give others)`,
	}, n.advice(i))

	require.NoError(t, os.Symlink(filepath.Join(n.root, "etc/cni"), filepath.Join(n.root, "link")))
	linked := cri.CNI{PluginDirs: []string{n.bin}, ConfDir: filepath.Join(n.root, "link/net.d")}
	i, err = n.install().resolveDirs(t.Context(), linked, nil)
	require.NoError(t, err)
	require.Empty(t, n.advice(i), "it is one directory")
}

func TestResolveDirsOfARuntimeThatDoesNotSay(t *testing.T) {
	n := newNode(t)
	unknown := errors.New("no runtime answers")
	i := n.auto(cri.CNI{}, unknown)
	require.Equal(t, []string{"/opt/cni/bin", "/etc/cni/net.d"}, []string{i.BinDir, i.ConfDir})
	i.Plugins, i.Config = nil, nil // they are the test machine's
	require.Equal(t, []string{"no container runtime says where it looks, so /opt/cni/bin and /etc/cni/net.d are assumed: no runtime answers"}, n.advice(i))

	require.NoError(t, n.auto(n.at("k3s")).Apply(t.Context()))
	i = n.auto(cri.CNI{}, unknown)
	require.Equal(t, n.at("k3s").ConfDir, i.ConfDir, "where it was installed")
	requireConverged(t, i, n.root)
}

// A runtime in doubt never means the default directories: the caller has to say which they are.
func TestSEC11_NoDirectoriesAreAssumedForARuntimeInDoubt(t *testing.T) {
	for _, doubt := range []error{code.New(code.CRISeveral, "several"), code.New(code.CRIUnproven, "unproven")} {
		n := newNode(t)
		i := n.install()
		i.Remedy, i.BinDir, i.RuntimeErr = "name it", "", fmt.Errorf("ask: %w", doubt)
		_, err := i.Wants(t.Context())
		require.ErrorIs(t, err, doubt)
		require.ErrorContains(t, err, "choose CNI directories: ask: "+doubt.Error()+" (name it)")
		i.BinDir = n.bin
		_, err = i.Wants(t.Context())
		require.NoError(t, err, "nothing has to be assumed")
	}
}

// A move reverts the old place; a later revert reverts the new one.
func TestResolveDirsAMoveUndoesTheOldPlace(t *testing.T) {
	n := newNode(t)
	other := filepath.Join(n.root, "old/net.d/10-other.conflist")
	write(t, other, "other", 0o644)
	before := tree(t, n.root)
	i := n.auto(n.at("old"))
	i.Exclusive = true
	require.NoError(t, i.Apply(t.Context()))
	require.NoFileExists(t, other)
	for _, r := range []cri.CNI{
		n.at("new"),
		{PluginDirs: n.at("newer").PluginDirs, ConfDir: n.at("new").ConfDir},
		{PluginDirs: n.at("newer").PluginDirs, ConfDir: n.at("newest").ConfDir},
	} {
		i = n.auto(r)
		changes, err := i.Check(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, changes)
		requireApplied(t, i, n.root)
		require.FileExists(t, filepath.Join(r.PluginDirs[0], "cilium-cni"))
		require.FileExists(t, filepath.Join(r.ConfDir, i.ConfName))
		require.FileExists(t, other, "given back")
		plugins, err := filepath.Glob(filepath.Join(n.root, "*/bin/*"))
		require.NoError(t, err)
		require.Len(t, plugins, 2, "the others are gone: %q", plugins)
		confs, err := filepath.Glob(filepath.Join(n.root, "*/net.d/"+i.ConfName))
		require.NoError(t, err)
		require.Len(t, confs, 1)
	}
	inUse := n.at("newer").PluginDirs[0]
	require.Equal(t, inUse, n.auto(cri.CNI{PluginDirs: []string{n.bin, inUse}, ConfDir: n.at("newest").ConfDir}).BinDir)
	require.NoError(t, i.Revert(t.Context()))
	require.Empty(t, kept(t, i))
	require.Equal(t, before, tree(t, n.root))
}

// A runtime that lies or is misconfigured may name other programs' directories. The directories that
// runtimes are known to use (internal/verify/layouts) are accepted.
func TestSEC11_ARuntimeNamesDirectoriesForCNI(t *testing.T) {
	confs := map[string]bool{
		"/etc/cni/net.d": true, "/etc/kubernetes/cni/net.d": true, "/var/lib/rancher/k3s/agent/etc/cni/net.d": true, "/var/lib/cni/net.d": true,
		"/var/snap/microk8s/8000/args/cni-network": true, "/nix/store/7dqv-kubernetes-cni-config": true, "/run/multus/cni/net.d": true, "/opt/net.d": true,
		"/etc/ssh/sshd_config.d": false, "/etc/sysctl.d": false, "/etc/cron.d": false, "/etc": false, "/": false, "/var/lib/kubelet": false,
		"/etc/kubernetes/manifests": false, "/home/mcnicol/conf": false, "/opt/bin": false,
		"/etc/cni/net.d/../../cron.d": false, "/opt/cni/../../etc/sudoers.d": false,
	}
	for dir, good := range confs {
		i, err := forRuntime(t.Context(), cniinstall.Install{BinDir: "/opt/cni/bin", Remedy: "give others"}, cri.CNI{ConfDir: dir}, nil)
		if good {
			require.NoError(t, err, dir)
			require.Equal(t, dir, i.ConfDir)
			continue
		}
		require.EqualError(t, err, `choose CNI directories: the container runtime reads configurations in "`+dir+`", which by its name is not for CNI (give others)`)
		i, err = forRuntime(t.Context(), cniinstall.Install{BinDir: "/opt/cni/bin", ConfDir: "/etc/cni/net.d"}, cri.CNI{ConfDir: dir}, nil)
		require.NoError(t, err, "a directory set explicitly is not checked")
		require.Equal(t, "/etc/cni/net.d", i.ConfDir)
	}
	for dir, good := range map[string]bool{
		"/opt/cni/bin": true, "/usr/lib/cni": true, "/usr/libexec/cni": true, "/home/kubernetes/bin": true, "/var/lib/rancher/k3s/data/7c2f9a/bin": true,
		"/usr/bin": false, "/bin": false, "/usr/local/bin": false, "/root/bin": false, "/etc/cron.daily": false, "/etc/ssh": false, "/usr/lib": false,
		"/etc/cni/net.d/../../cron.d": false,
	} {
		_, err := forRuntime(t.Context(), cniinstall.Install{ConfDir: "/etc/cni/net.d"}, cri.CNI{PluginDirs: []string{dir}}, nil)
		if !good {
			require.ErrorContains(t, err, dir+" is by its name not a directory for CNI plugins")
		} else if err != nil {
			require.NotContains(t, err.Error(), "by its name", dir) // the test machine's may be unusable
		}
	}
}
