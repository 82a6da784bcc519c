// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/utils"
	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cniinstall"
)

// calicoConf is laid out like Calico's: a plugin whose ipam is the same program, and one
// reference plugin.
const calicoConf = `{"name":"k8s-pod-network","cniVersion":"1.0.0","plugins":[{"type":"calico","ipam":{"type":"calico-ipam"}},{"type":"portmap","snat":true}]}`

// who is a plugin that prints the name it was called by, unless asked for its versions.
const who = `#!/bin/sh
[ "$CNI_COMMAND" = VERSION ] || { basename "$0"; exit; }
echo '{"cniVersion":"1.0.0","supportedVersions":["1.0.0"]}'
`

// calico installs a program that is two plugins by its names, in two directories.
func calico(t *testing.T) (node, recorded, string) {
	n := newNode(t)
	for _, name := range []string{"cilium-cni", "loopback"} {
		require.NoError(t, os.Remove(filepath.Join(n.src, name)))
	}
	n.source("calico", who)
	n.source("calico-ipam", who)
	n.source("portmap", script("1.0.0"))
	i, second := n.install(), filepath.Join(n.root, "secondary")
	i.Config, i.ConfName = cniinstall.Whole(calicoConf), "10-calico.conflist"
	i.AlsoBinDirs, i.Vouched = []string{second}, []string{"loopback"}
	return n, i, second
}

// A name that is no longer listed is removed from each directory.
func TestCNI10_NamesOfOneProgram(t *testing.T) {
	n, i, also := calico(t)
	write(t, n.plugin("calico-ipam"), "theirs", 0o755)
	i.Replace = []string{"calico"}
	i.Names = []string{"calico", "calico-ipam", "portmap"}
	require.NoError(t, i.Apply(t.Context()))
	requireContent(t, n.plugin("calico-ipam"), "theirs", 0o755)
	requireContent(t, filepath.Join(also, "calico-ipam"), who, 0o755)

	i.Names, i.Config = []string{"calico", "portmap"}, cniinstall.Whole(strings.Replace(calicoConf, `"ipam":{"type":"calico-ipam"}`, `"mtu":1`, 1))
	requireApplied(t, i, n.root)
	require.FileExists(t, n.plugin("calico-ipam"), "it was never ours")
	require.NoFileExists(t, filepath.Join(also, "calico-ipam"))
}

// Plugins that the caller vouches for are neither looked for nor run: no error, no wait.
func TestCNI10_PluginsElsewhere(t *testing.T) {
	n := newNode(t)
	i := n.install()
	require.NoError(t, os.Remove(filepath.Join(n.src, "loopback")))
	i.Config = cniinstall.Whole(calicoConf)
	for _, missing := range []string{"calico", "portmap", "loopback"} {
		require.ErrorIs(t, second(i.Check(t.Context())), cniinstall.ErrPluginMissing)
		seen, err := i.Missing(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, seen)
		i.Vouched = append(i.Vouched, missing)
	}
	seen, err := i.Missing(t.Context())
	require.NoError(t, err)
	require.Empty(t, seen)
	write(t, n.plugin("calico"), "no program", 0o755)
	i.Optional = []string{"portmap", "loopback"}
	require.Empty(t, n.advice(i), "no plugin is missing")
	requireApplied(t, i, n.root)
	requireContent(t, n.confFile(), calicoConf, 0o600)
	require.NoError(t, i.Revert(t.Context()))
}

// loadedBy returns the error of libcni's own loader for a file, or of its checks when a pod
// starts; nil if it accepts the file.
func loadedBy(path string) error {
	list, err := loadedList(path)
	if err != nil {
		return err
	}
	return named(list.Name)
}

// loadedList is what containerd (go-cni's loadFromConfDir) and CRI-O (ocicni's loadNetworks)
// read from a file, by the suffix of its name alone.
func loadedList(path string) (*libcni.NetworkConfigList, error) {
	if filepath.Ext(path) == ".conflist" {
		return libcni.NetworkConfFromFile(path)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	conf, err := libcni.NetworkPluginConfFromBytes(raw)
	if err != nil {
		return nil, err
	}
	return libcni.ConfListFromConf(conf) //lint:ignore SA1019 it is what runtimes call
}

func named(network string) error {
	if err := utils.ValidateNetworkName(network); err != nil {
		return errors.New(err.Msg)
	}
	return nil
}

// A user's whole configuration is accepted exactly if libcni accepts it, even where Calico's
// own installer would publish it unread.
func TestCNI10_AWholeConfigurationIsHeldToWhatLibcniTakes(t *testing.T) {
	plain := `{"type":"cilium-cni"}`
	for name, conf := range map[string]struct{ file, content, part string }{
		"a list":                           {"10-x.conflist", "{ \"name\":\"n\",\n\t\"plugins\":[" + plain + "] }\r\n", ""},
		"more keys":                        {"10-x.conflist", `{"name":"n","x":1,"type":"y","cniVersions":["0.3.1"],"plugins":[{"type":"cilium-cni","y":{"z":[]}}]}`, ""},
		"disableCheck":                     {"10-x.conflist", `{"name":"n","disableCheck":"True","disableGC":false,"plugins":[` + plain + `]}`, ""},
		"a name with dots":                 {"10-x.conflist", `{"name":"k8s.pod_net-1","plugins":[` + plain + `]}`, ""},
		"its plugins in a directory":       {"10-x.conflist", `{"name":"n"}`, plain},
		"type, and plugins in a directory": {"10-x.conflist", `{"name":"n","type":"cilium-cni"}`, plain},
		"plugins in both":                  {"10-x.conflist", `{"name":"n","plugins":[` + plain + `]}`, plain},
		"inlined only":                     {"10-x.conflist", `{"name":"n","loadOnlyInlinedPlugins":true,"plugins":[` + plain + `]}`, `{"no":"plugin"}`},
		"inlined only, and none":           {"10-x.conflist", `{"name":"n","loadOnlyInlinedPlugins":true}`, plain},
		"no plugin in the directory":       {"10-x.conflist", `{"name":"n"}`, `{"no":"plugin"}`},
		"one plugin":                       {"10-x.conf", `{"name":"n","type":"cilium-cni"}`, ""},
		"keys in another case":             {"10-x.conf", `{"Name":"n","CNIVERSION":"0.3.1","Type":"cilium-cni"}`, ""},
		"one plugin with plugins":          {"10-x.conf", `{"name":"n","type":"cilium-cni","plugins":[1]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.source("cilium-cni", script("0.1.0", "0.3.1"))
			if conf.part != "" {
				write(t, n.other("n/10-part.conf"), conf.part, 0o600)
			}
			i := n.install()
			i.ConfName, i.Config = conf.file, cniinstall.Whole(conf.content)
			write(t, filepath.Join(n.root, "net.d", conf.file), conf.content, 0o600)
			if conf.part != "" {
				write(t, filepath.Join(n.root, "net.d/n/10-part.conf"), conf.part, 0o600)
			}
			want, err := loadedBy(filepath.Join(n.root, "net.d", conf.file)), i.Apply(t.Context())
			if want != nil {
				require.ErrorIs(t, err, cniinstall.ErrInvalid, "libcni says %v", want)
				return
			}
			require.NoError(t, err)
			requireContent(t, n.other(conf.file), conf.content, 0o600)
		})
	}
}

// The plugins named in the network's directory must be present too.
func TestCNI10_PluginsOfTheNetworksDirectoryAreLookedFor(t *testing.T) {
	n := newNode(t)
	n.source("cilium-cni", script("0.1.0"))
	write(t, n.other("n/10-part.conf"), `{"type":"part"}`, 0o600)
	i := n.install()
	i.Config = cniinstall.Whole(`{"name":"n","plugins":[{"type":"cilium-cni"}]}`)
	require.ErrorIs(t, i.Apply(t.Context()), cniinstall.ErrPluginMissing)
	n.source("part", script("0.3.1", "1.0.0"))
	require.ErrorContains(t, i.Apply(t.Context()), "plugin part does not speak cniVersion 0.1.0")
	n.source("part", script("0.1.0"))
	require.NoError(t, i.Apply(t.Context()))
}
