// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package installers_test

import (
	"bytes"
	"encoding/base64"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/installers"
)

// calico is the installer as upstream's runCniContainer starts it, and its output.
func (n *node) calico(env ...string) (installers.Calico, error) {
	n.t.Helper()
	if _, err := os.Stat(filepath.Join(n.Image, bin)); err != nil {
		image(n.t, n.Image, installers.NewCalicoImage())
		require.NoError(n.t, os.RemoveAll(filepath.Join(n.Image, "calico-secrets")))
	}
	n.Env["KUBERNETES_SERVICE_HOST"], n.Env["KUBERNETES_SERVICE_PORT"], n.Env["KUBERNETES_NODE_NAME"] = "127.0.0.1", "6443", "my-node"
	for i := 0; i < len(env); i += 2 {
		n.Env[env[i]] = env[i+1]
	}
	c := installers.Calico{Setting: n.Setting, Token: "my-secret-key", CA: "my-ca-data"}
	p, done, err := c.Plan(n.t.Context())
	if err != nil {
		return c, err
	}
	_, err = p.Apply(n.t.Context())
	require.NoError(n.t, done())
	return c, err
}

func (n *node) calicoInstalls(env ...string) {
	n.t.Helper()
	_, err := n.calico(env...)
	require.NoError(n.t, err)
	c := installers.Calico{Setting: n.Setting, Token: "my-secret-key", CA: "my-ca-data"}
	p, done, err := c.Plan(n.t.Context())
	require.NoError(n.t, err)
	applied(n.t, p)
	require.NoError(n.t, done())
}

// calicoFails expects the installer to fail, with no configuration published.
func (n *node) calicoFails(says string, env ...string) error {
	n.t.Helper()
	_, err := n.calico(env...)
	require.ErrorContains(n.t, err, says)
	n.hasNot(conf+"/10-calico.conflist", conf+"/calico-kubeconfig")
	return err
}

// calicoDefault is the default configuration that the cases expect.
const calicoDefault = `{
  "name": "k8s-pod-network",
  "cniVersion": "1.0.0",
  "plugins": [
    {
      "type": "calico",
      "log_level": "info",
      "log_file_path": "/var/log/calico/cni/cni.log",
      "datastore_type": "kubernetes",
      "nodename": "my-node",
      "mtu": 1500,
      "ipam": {"type": "calico-ipam"},
      "policy": {"type": "k8s"},
      "kubernetes": {"kubeconfig": "/etc/cni/net.d/calico-kubeconfig"},
      "require_mtu_file": false,
      "calico_api_group": "crd.projectcalico.org/v1"
    },
    {
      "type": "portmap",
      "snat": true,
      "capabilities": {"portMappings": true}
    }
  ]
}`

// calicoAlternate is the content of a file in one case: a single plugin's configuration.
const calicoAlternate = `{"name": "alternate", "type": "calico", "log_level": "info", "ipam": {"type": "calico-ipam"}}`

const noRuntime = "no runtime loads it from a .conflist: libcni says that it "

func TestCalicosCases(t *testing.T) {
	testns.Root(t)
	from := upstream{"Calico", "cni-plugin/pkg/install/install_test.go", "87c15906f20c"}
	rebuilt(t, from, append(append(calicoContainer(), calicoComparisons()...), calicoKubeconfigs()...))
}

// calicoContainer rebuilds the cases "CNI installation tests".
func calicoContainer() []row {
	return []row{
		{name: "Install with default values: Should install bins and config", test: func(n *node) {
			n.calicoInstalls()
			n.has(bin+"/calico", bin+"/calico-ipam", conf+"/10-calico.conflist")
		}},
		{name: "Install with default values: Should parse and output a templated config", test: func(n *node) {
			n.calicoInstalls()
			require.Equal(n.t, calicoDefault, n.content(conf+"/10-calico.conflist"))
		}},
		{name: "should fail on read-only folder install", test: func(n *node) {
			testns.Enter(n.t, testns.Mount)
			n.readOnly(bin)
			require.ErrorIs(n.t, n.calicoFails(bin), unix.EROFS)
		}},
		{name: "should not fail on one of the folders being read-only", test: func(n *node) {
			testns.Enter(n.t, testns.Mount)
			n.readOnly(bin)
			require.NoError(n.t, os.Mkdir(n.path("/secondary-bin-dir"), 0o755))
			n.calicoInstalls()
			n.has("/secondary-bin-dir/calico", "/secondary-bin-dir/calico-ipam", conf+"/10-calico.conflist")
		}},
		{name: "should fail when no directory is writeable", test: func(n *node) {
			testns.Enter(n.t, testns.Mount)
			n.readOnly(bin)
			n.readOnly("/secondary-bin-dir")
			require.ErrorIs(n.t, n.calicoFails(bin), unix.EROFS)
		}},
		{name: "should succeed on read-only bin dir when calico is pre-installed and UPDATE_CNI_BINARIES=false",
			test: func(n *node) {
				testns.Enter(n.t, testns.Mount)
				n.put(bin+"/calico", "stub", 0o755)
				n.put(bin+"/calico-ipam", "stub", 0o755)
				n.readOnly(bin)
				n.readOnly("/secondary-bin-dir")
				n.calicoInstalls("UPDATE_CNI_BINARIES", "false")
				n.has(conf + "/10-calico.conflist")
			}},
		{name: "should fail on read-only bin dir when calico-ipam is missing and UPDATE_CNI_BINARIES=false", test: func(n *node) {
			testns.Enter(n.t, testns.Mount)
			n.put(bin+"/calico", "stub", 0o755)
			n.readOnly(bin)
			n.readOnly("/secondary-bin-dir")
			require.ErrorIs(n.t, n.calicoFails("not writable", "UPDATE_CNI_BINARIES", "false"), unix.EROFS)
		}},
		{name: "should support CNI_CONF_NAME", test: func(n *node) {
			n.calicoInstalls("CNI_CONF_NAME", "20-calico.conflist")
			require.Equal(n.t, calicoDefault, n.content(conf+"/20-calico.conflist"))
		}},
		{name: "should support a custom CNI_NETWORK_CONFIG", differs: noRuntime + "has no name", test: func(n *node) {
			invalid := (*cniinstall.InvalidError)(nil)
			require.ErrorAs(n.t, n.calicoFails("", "CNI_NETWORK_CONFIG", "{}"), &invalid)
		}},
		{name: "should check if the custom CNI_NETWORK_CONFIG is valid json", test: func(n *node) {
			require.Error(n.t, n.calicoFails("JSON", "CNI_NETWORK_CONFIG", `{"missing quote}`))
		}},
		{name: "should use CNI_NETWORK_CONFIG_FILE over CNI_NETWORK_CONFIG", differs: noRuntime + "has no plugins; in a .conf it is installed",
			test: func(n *node) {
				n.put(conf+"/alternate-config", calicoAlternate, 0o755)
				env := []string{"CNI_NETWORK_CONFIG", "'oops, I used the CNI_NETWORK_CONFIG'", "CNI_NETWORK_CONFIG_FILE", n.path(conf + "/alternate-config")}
				invalid := (*cniinstall.InvalidError)(nil)
				require.ErrorAs(n.t, n.calicoFails("", env...), &invalid)
				n.calicoInstalls(append(env, "CNI_CONF_NAME", "10-calico.conf")...)
				require.Equal(n.t, calicoAlternate, n.content(conf+"/10-calico.conf"))
			}},
		{name: "should copy even if plugin is opened", test: func(n *node) {
			n.calicoInstalls()
			writeRunning(n.t, n.path(bin+"/portmap"))
			n.calicoInstalls()
		}},
		{name: "copying /calico-secrets: Should not crash or copy when having a hidden file", test: func(n *node) {
			writeFile(n.t, filepath.Join(n.Image, "calico-secrets/.hidden"), "doesn't matter", 0o644)
			image(n.t, n.Image, withoutSecrets(installers.NewCalicoImage()))
			n.calicoInstalls()
			n.hasNot(conf + "/calico-tls/.hidden")
		}},
		{name: "copying /calico-secrets: Should copy a non-hidden file", differs: noRuntime + "has no name; with a valid one the file is copied, and named in it",
			test: func(n *node) {
				writeFile(n.t, filepath.Join(n.Image, "calico-secrets/etcd-cert"), "doesn't matter", 0o644)
				image(n.t, n.Image, withoutSecrets(installers.NewCalicoImage()))
				require.Error(n.t, n.calicoFails("", "CNI_NETWORK_CONFIG", `{"etcd_cert": "__ETCD_CERT_FILE__"}`))
				n.calicoInstalls("CNI_NETWORK_CONFIG", `{"cniVersion": "1.0.0", "name": "n", "plugins": [{"type": "calico", "etcd_cert": "__ETCD_CERT_FILE__"}]}`)
				n.has(conf + "/calico-tls/etcd-cert")
				require.Contains(n.t, n.content(conf+"/10-calico.conflist"), `"etcd_cert": "/etc/cni/net.d/calico-tls/etcd-cert"`)
			}},
	}
}

func withoutSecrets(files []installers.File) (plugins []installers.File) {
	for _, f := range files {
		if filepath.Dir(f.Path) == bin {
			plugins = append(plugins, f)
		}
	}
	return plugins
}

// writeRunning puts a program at path, which runs until the test ends.
func writeRunning(t *testing.T, path string) {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	content, err := os.ReadFile(sleep)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path+".new", content, 0o755))
	require.NoError(t, os.Rename(path+".new", path))
	cmd := exec.CommandContext(t.Context(), path, "1000")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() })
}

// calicoComparisons rebuilds "file comparison tests", which call destinationUptoDate: our
// equivalent is the step's Check for a plugin, and the journal's Written for another file.
// Upstream's files have mode 0644, with which no plugin runs.
func calicoComparisons() (rows []row) {
	big := bytes.Repeat([]byte("0123456789abcdefABCDEF"), 256000/22)
	for _, c := range []struct {
		name     string
		src, dst []byte
		mode     fs.FileMode // of the destination; zero means the source's
		same     bool
	}{
		{name: "should compare two equal files", src: []byte("doesn't matter"), dst: []byte("doesn't matter"), same: true},
		{name: "should compare two unequal files", src: []byte("doesn't matter"), dst: []byte("it does matter")},
		{name: "should compare two unequal files of the same size", src: []byte("foobar"), dst: []byte("barfoo")},
		{name: "should compare two files with differing file modes", src: []byte("doesn't matter"), dst: []byte("doesn't matter"), mode: 0o777},
		{name: "should compare a big file with a small file", src: big, dst: big[:10]},
		{name: "should compare a small file with a big file", src: big[:10], dst: big},
		{name: "should compare two files larger than the buffer size, that differ slightly", src: big[:128002], dst: big[:128003]},
		{name: "should compare two identical files larger than the buffer size", src: big, dst: big, same: true},
	} {
		rows = append(rows, row{name: c.name, test: func(n *node) {
			for _, mode := range []fs.FileMode{0o755, 0o644} {
				at := mode
				if c.mode != 0 {
					at = c.mode
				}
				writeFile(n.t, filepath.Join(n.Image, "file"), string(c.src), mode)
				n.put(bin+"/file", string(c.dst), at)
				require.Equal(n.t, c.same, n.upToDate(mode, c.src))
			}
		}})
	}
	return rows
}

// upToDate reports whether the plugin, or other file, equals the container's.
func (n *node) upToDate(mode fs.FileMode, content []byte) bool {
	n.t.Helper()
	if mode == 0o755 {
		plugins, err := cniinstall.OpenPlugins(n.Image)
		require.NoError(n.t, err)
		defer plugins.Close()
		changes, err := cniinstall.Install{Plugins: plugins, Names: []string{"file"}, BinDir: n.path(bin)}.Check(n.t.Context())
		require.NoError(n.t, err)
		return len(changes) == 0
	}
	written, err := journal.Files{Kind: "test"}.Written(n.t.Context(), nil, n.path(bin+"/file"), journal.File{Content: content, Mode: mode})
	require.NoError(n.t, err)
	return written
}

// calicoKubeconfigs rebuilds the tests of calculateKubeconfig.
func calicoKubeconfigs() []row {
	kubeconfig := func(n *node, env ...string) string {
		n.calicoInstalls()
		for i := 0; i < len(env); i += 2 {
			n.Env[env[i]] = env[i+1]
		}
		c := installers.Calico{Setting: n.Setting, Token: "tok", CA: "my-ca-data"}
		p, done, err := c.Plan(n.t.Context())
		require.NoError(n.t, err)
		applied(n.t, p)
		require.NoError(n.t, done())
		info, err := os.Stat(n.path(conf + "/calico-kubeconfig"))
		require.NoError(n.t, err)
		require.Equal(n.t, fs.FileMode(0o600), info.Mode())
		return n.content(conf + "/calico-kubeconfig")
	}
	const data = "certificate-authority-data: "
	return []row{
		{name: "TestCalculateKubeconfig_IPv4_NoBrackets", own: true, test: func(n *node) {
			text := kubeconfig(n, "KUBERNETES_SERVICE_PROTOCOL", "")
			require.Contains(n.t, text, "server: https://127.0.0.1:6443\n")
			require.Contains(n.t, text, data+base64.StdEncoding.EncodeToString([]byte("my-ca-data")))
			require.Contains(n.t, text, "token: tok\n")
		}},
		{name: "TestCalculateKubeconfig_IPv6_Wrapped", own: true, test: func(n *node) {
			text := kubeconfig(n, "KUBERNETES_SERVICE_PROTOCOL", "https", "KUBERNETES_SERVICE_HOST", "2001:db8::1")
			require.Contains(n.t, text, "server: https://[2001:db8::1]:6443\n")
		}},
		{name: "TestCalculateKubeconfig_SkipTLSVerify", own: true, test: func(n *node) {
			text := kubeconfig(n, "SKIP_TLS_VERIFY", "true")
			require.Contains(n.t, text, "insecure-skip-tls-verify: true\n")
			require.NotContains(n.t, text, data)
		}},
	}
}
