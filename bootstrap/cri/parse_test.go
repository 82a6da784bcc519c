// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri_test

import (
	"encoding/binary"
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/cri"
)

// Each is what a real containerd of Debian, and one built from its module, said on
// a node with one configuration.
func TestEachContainerdSaysWhatItReads(t *testing.T) {
	for _, version := range []string{"1.4.13", "1.6.20", "1.7.24", "2.1.4"} {
		text, err := os.ReadFile(filepath.Join("testdata", "containerd-"+version+".json"))
		require.NoError(t, err)
		where, networks, err := cri.ParseCNIConfig(string(text))
		require.NoError(t, err)
		require.Equal(t, cri.CNI{PluginDirs: []string{"/usr/lib/cni"}, ConfDir: "/etc/cni/net.d", MaxConfNum: 1}, where, version)
		require.Equal(t, []cri.Network{{
			Name: "ours", Plugins: []string{"our-cni", "portmap"},
			Source: `{"cniVersion":"1.0.0","name":"ours","plugins":[{"type":"our-cni","log":"/a"},{"type":"portmap","capabilities":{"portMappings":true}}]}` + "\n",
		}}, networks, version)
	}
}

func TestCRIOsConfigurationInSmall(t *testing.T) {
	for text, want := range map[string]cri.CNI{
		"": {},
		"[crio.network]\nnetwork_dir = \"/a\\tb/\"\nplugin_dirs = [ \"/x\" , \"/\\u00fc\", ]": {ConfDir: "/a\tb", PluginDirs: []string{"/x", "/ü"}},
		"[crio.network]\nplugin_dirs = []\n[crio]\nplugin_dirs = 7":                           {},
		"[crio]\n[crio.network]\r\nnetwork_dir = \"/a=b # c\"\r\n":                            {ConfDir: "/a=b # c"},
	} {
		got, err := cri.ParseConfig(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"network_dir", "network_dir =", "network_dir = '/a'", "network_dir = `/a`", `network_dir = "/a", "/b"`, `network_dir = """`, `network_dir = "a"`,
		`plugin_dirs = "/a"`, `plugin_dirs = ["/a"`, `plugin_dirs = ["/a" "/b"]`, `plugin_dirs = ["/a",,]`, `plugin_dirs = [7]`, `plugin_dirs = ["a"]`, `plugin_dirs = ["/a"] # one`,
	} {
		_, err := cri.ParseConfig("[crio.network]\n" + text)
		require.Error(t, err, text)
	}
}

func FuzzParseStatus(f *testing.F) {
	network := "\x0a\x0cNetworkReady\x10\x01"
	f.Add([]byte("\x0a" + string(rune(len(network)+2)) + "\x0a" + string(rune(len(network))) + network))
	f.Add([]byte("\x12\x06\x0a\x01a\x12\x01b\x1a\x00"))
	f.Add([]byte("\x09\x00\x00\x00\x00\x00\x00\x00\x00\x0d\x00\x00\x00\x00\x08\xff\x01\x0b"))
	f.Fuzz(func(t *testing.T, message []byte) {
		s, info, err := cri.ParseStatus(message)
		size := len(s.Reason)
		for key, value := range info {
			size += len(key) + len(value)
		}
		require.LessOrEqual(t, size, len(message))
		if err == nil { // then it still is one with a field that nobody knows
			_, again, err := cri.ParseStatus(append(binary.AppendUvarint(nil, 99<<3), append([]byte{1}, message...)...))
			require.NoError(t, err)
			require.Equal(t, info, again)
		}
	})
}

func FuzzParseSandboxes(f *testing.F) {
	f.Add([]byte("\x0a\x09\x0a\x01a\x12\x02\x0a\x00\x18\x01\x0a\x03\x0a\x01b"))
	f.Fuzz(func(t *testing.T, message []byte) {
		ids, err := cri.ParseSandboxes(message)
		require.True(t, err == nil || ids == nil)
		require.NotContains(t, ids, "")
	})
}

func FuzzParseCNIConfig(f *testing.F) {
	text, err := os.ReadFile("testdata/containerd-2.1.4.json")
	require.NoError(f, err)
	f.Add(string(text))
	f.Add(`{"Networks":[null,{"Config":null}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		if where, _, err := cri.ParseCNIConfig(text); err == nil {
			absolute(t, where)
		}
	})
}

func FuzzParseConfig(f *testing.F) {
	text, err := os.ReadFile("testdata/crio.toml")
	require.NoError(f, err)
	f.Add(string(text))
	f.Add("[crio.network]\nplugin_dirs = [\"/\\U0001F600\", \"/\\x41\",]\nnetwork_dir=\"/\\\"\"")
	f.Fuzz(func(t *testing.T, text string) {
		if where, err := cri.ParseConfig(text); err == nil {
			absolute(t, where)
		}
	})
}

func absolute(t *testing.T, where cri.CNI) {
	dirs := where.PluginDirs
	if where.ConfDir != "" {
		dirs = append(dirs[:len(dirs):len(dirs)], where.ConfDir)
	}
	for _, dir := range dirs {
		require.True(t, path.IsAbs(dir) && path.Clean(dir) == dir, "%q", dir)
	}
}
