// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/cri"
)

// Each file is the answer of a real containerd, Debian's or one built from its module, on a
// node with one configuration.
func TestEachContainerdSaysWhatItReads(t *testing.T) {
	for _, version := range []string{"1.6.20", "1.7.24", "2.1.4"} {
		text, err := os.ReadFile(filepath.Join("testdata", "containerd-"+version+".json"))
		require.NoError(t, err)
		where, networks, err := cri.ParseCNIConfig(text)
		require.NoError(t, err)
		require.Equal(t, cri.CNI{PluginDirs: []string{"/usr/lib/cni"}, ConfDir: "/etc/cni/net.d"}, where, version)
		require.Equal(t, []cri.Network{{
			Name:   "ours",
			Source: `{"cniVersion":"1.0.0","name":"ours","plugins":[{"type":"our-cni","log":"/a"},{"type":"portmap","capabilities":{"portMappings":true}}]}` + "\n",
		}}, networks, version)
	}
}

func TestCRIOsConfigurationInSmall(t *testing.T) {
	for text, want := range map[string]cri.CNI{
		"": onCRIO(cri.CNI{}, "", true),
		"[crio.network]\nnetwork_dir = \"/a\\tb/\"\nplugin_dirs = [ \"/x\" , \"/\\u00fc\" ]": onCRIO(cri.CNI{ConfDir: "/a\tb", PluginDirs: []string{"/x", "/ü"}}, "", true),
		"[crio.network]\nplugin_dirs = []\n[crio]\nplugin_dirs = 7":                          onCRIO(cri.CNI{PluginDirs: []string{}}, "", true),
		"[crio]\n[crio.network]\r\nnetwork_dir = \"/a=b # c\"\r\n":                           onCRIO(cri.CNI{ConfDir: "/a=b # c"}, "", true),
		"[crio.network]\ncni_default_network = \"n\"\ncni_status_grace_period = \"1m0s\"":    onCRIO(cri.CNI{}, "n", false),
	} {
		got, err := cri.ParseConfig(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"network_dir", "network_dir =", "network_dir = '/a'", "network_dir = `/a`", `network_dir = "/a", "/b"`, `network_dir = """`, "cni_default_network = 7", `network_dir = "a"`,
		`plugin_dirs = "/a"`, `plugin_dirs = ["/a"`, `plugin_dirs = ["/a" "/b"]`, `plugin_dirs = ["/a",,]`, `plugin_dirs = [7]`, `plugin_dirs = ["a"]`, `plugin_dirs = ["/a"] # one`,
	} {
		_, err := cri.ParseConfig("[crio.network]\n" + text)
		require.Error(t, err, text)
	}
}

func onCRIO(c cri.CNI, network string, staysReady bool) cri.CNI {
	c.CRIO.DefaultNetwork, c.CRIO.StaysReady = network, staysReady
	return c
}

func FuzzParseStatus(f *testing.F) {
	network := "\x0a\x0cNetworkReady\x10\x01"
	f.Add([]byte("\x0a" + string(rune(len(network)+2)) + "\x0a" + string(rune(len(network))) + network))
	f.Add([]byte("\x12\x06\x0a\x01a\x12\x01b\x1a\x00"))
	f.Add([]byte("\x09\x00\x00\x00\x00\x00\x00\x00\x00\x0d\x00\x00\x00\x00\x08\xff\x01\x0b"))
	f.Fuzz(func(t *testing.T, message []byte) {
		info, err := cri.ParseStatus(message)
		size := 0
		for key, value := range info {
			size += len(key) + len(value)
		}
		require.LessOrEqual(t, size, len(message))
		if err == nil { // then it is valid, with an unknown field
			again, err := cri.ParseStatus(append(binary.AppendUvarint(nil, 99<<3), append([]byte{1}, message...)...))
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
		if where, _, err := cri.ParseCNIConfig([]byte(text)); err == nil {
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

// Elements that take a hundred times their size in memory are counted first. The bounds
// are those of a node in the tests of nodeinit, in a cgroup of 64 MiB.
func TestSEC6_ElementsOfAnAnswerAreCounted(t *testing.T) {
	const size = 4 << 20
	fill := func(start, element, end string) []byte {
		return []byte(start + strings.Repeat(element+",", (size-len(start+end))/(len(element)+1)) + element + end)
	}
	const most = 8 << 20
	for name, parse := range map[string]func() (allocated uint64, err error){
		"networks": func() (uint64, error) {
			text := fill(`{"Networks":[`, "{}", "]}")
			return allocated(func() error { _, _, err := cri.ParseCNIConfig(text); return err })
		},
		"directories": func() (uint64, error) {
			text := fill(`{"PluginDirs":[`, `"/"`, "]}")
			return allocated(func() error { _, _, err := cri.ParseCNIConfig(text); return err })
		},
		"directories of CRI-O": func() (uint64, error) {
			text := string(fill("[crio.network]\nplugin_dirs = [", `"/"`, "]"))
			return allocated(func() error { _, err := cri.ParseConfig(text); return err })
		},
		"sandboxes": func() (uint64, error) {
			message := []byte(strings.Repeat("\x0a\x03\x0a\x01a", size/5))
			return allocated(func() error { _, err := cri.ParseSandboxes(message); return err })
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := parse()
			require.ErrorContains(t, err, "more than 20000 elements")
			require.Less(t, n, uint64(most))
		})
	}
	t.Run("keys", func(t *testing.T) {
		var message []byte
		for i := range size / 11 {
			message = fmt.Appendf(message, "\x12\x09\x0a\x07%07d", i)
		}
		n, err := allocated(func() error { _, err := cri.ParseStatus(message); return err })
		require.NoError(t, err)
		require.Less(t, n, uint64(most))
	})
	t.Run("source", func(t *testing.T) {
		s := cri.Status{LastLoad: "OK", Networks: []cri.Network{{Source: string(fill(`{"a":[`, "[]", "]}"))}}}
		n, err := allocated(func() error { _, err := s.Loads([]byte(`{"a":[]}`)); return err })
		require.NoError(t, err)
		require.Less(t, n, uint64(most))
	})
}

// allocated returns how many bytes f allocates, and its error.
func allocated(f func() error) (uint64, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}
