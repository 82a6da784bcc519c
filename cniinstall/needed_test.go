// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cniinstall"
)

// portmapConf is a configuration of another CNI's that names our portmap.
const portmapConf = `{"cniVersion":"1.0.0","name":"other","plugins":[{"type":"other-cni"},{"type":"portmap"}]}`

// shared is a node with the agent's installation, including portmap, which another CNI may also
// use.
func shared(t *testing.T) (node, recorded) {
	n := newNode(t)
	n.source("portmap", script("0.3.1", "1.0.0"))
	require.NoError(t, os.MkdirAll(n.conf, 0o755))
	return n, n.install()
}

// kept lists the objects that are still recorded.
func kept(t *testing.T, i recorded) (objects []string) {
	status, err := i.Book.Status(t.Context())
	require.NoError(t, err)
	for _, r := range status.Records {
		objects = append(objects, r.Object)
	}
	return objects
}

// adviceOf lists the advice in a report.
func adviceOf(report *bootstrap.Report) (lines []string) {
	for _, r := range report.Results {
		lines = append(lines, r.Advice...)
	}
	return lines
}

// A plugin stays as long as a remaining configuration names it, whoever wrote that and however
// it names it; it stays recorded, and the next revert removes it.
func TestCNI10_APluginThatAConfigurationNamesStays(t *testing.T) {
	for name, tt := range map[string]struct {
		file, content string
		named         string // the file named in the error; empty if only loopback stays
	}{
		"a list":                     {"10-other.conflist", portmapConf, "10-other.conflist"},
		"one plugin":                 {"10-other.conf", `{"name":"o","type":"portmap"}`, "10-other.conf"},
		"json":                       {"10-other.json", `{"name":"o","type":"portmap"}`, "10-other.json"},
		"an ipam":                    {"10-other.conf", `{"name":"o","type":"x","ipam":{"type":"portmap"}}`, "10-other.conf"},
		"a delegate":                 {"10-other.conf", `{"name":"o","type":"multus","delegates":[{"plugins":[{"type":"portmap"}]}]}`, "10-other.conf"},
		"no JSON, with the word":     {"10-other.conflist", `{"plugins":[{"type":"portmap"`, "10-other.conflist"},
		"no JSON, without":           {"10-other.conflist", `{"plugins":[{"type":"portmapper"`, ""},
		"another":                    {"10-other.conflist", strings.ReplaceAll(portmapConf, "portmap", "bridge"), ""},
		"what no runtime loads":      {"10-other.conflist.bak", portmapConf, "-"},
		"the network's directory":    {"other/10-part.conf", `{"type":"portmap"}`, "other/10-part.conf"},
		"a directory beside no list": {"single/10-part.conf", `{"type":"portmap"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n, i := shared(t)
			require.NoError(t, i.Apply(t.Context()))
			if strings.HasPrefix(tt.file, "other/") {
				write(t, n.other("10-other.conflist"), `{"name":"other"}`, 0o644)
			}
			if strings.HasPrefix(tt.file, "single/") {
				write(t, n.other("10-single.conf"), `{"name":"single","type":"x"}`, 0o644)
			}
			write(t, n.other(tt.file), tt.content, 0o644)
			for range 2 {
				_, err := i.CheckRevert(t.Context())
				require.NoError(t, err)
				require.NoError(t, i.Revert(t.Context()), "that is no failure")
				require.NoFileExists(t, n.confFile())
				require.NoFileExists(t, n.plugin("cilium-cni"))
				if tt.named == "-" {
					require.NoFileExists(t, n.plugin("loopback"))
					return
				}
				require.FileExists(t, n.plugin("loopback"), "there is a configuration")
				if tt.named == "" {
					require.NoFileExists(t, n.plugin("portmap"))
					continue
				}
				requireContent(t, n.plugin("portmap"), script("0.3.1", "1.0.0"), 0o755)
				require.Contains(t, kept(t, i), n.plugin("portmap"))
				changes, err := i.CheckRevert(t.Context())
				require.NoError(t, err)
				require.Empty(t, changes)
			}
			require.NoError(t, os.RemoveAll(n.conf))
			require.NoError(t, i.Revert(t.Context()))
			require.NoDirExists(t, n.bin)
			require.NoDirExists(t, n.state)
		})
	}
}

// A configuration that was set aside names the plugin and is restored by the same revert.
func TestCNI10_APluginThatARestoredConfigurationNamesStays(t *testing.T) {
	for name, link := range map[string]bool{"file": false, "link": true} {
		t.Run(name, func(t *testing.T) {
			n, i := shared(t)
			i.Exclusive = true
			write(t, n.other("10-other.conflist"), portmapConf, 0o644)
			if link {
				require.NoError(t, os.Rename(n.other("10-other.conflist"), n.other("other")))
				require.NoError(t, os.Symlink("other", n.other("10-other.conflist")))
			}
			require.NoError(t, i.Apply(t.Context()))
			require.NoFileExists(t, n.other("10-other.conflist"))
			changes, err := i.CheckRevert(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{"write file " + n.other("10-other.conflist"), "remove file " + n.confFile(), "remove file " + n.plugin("cilium-cni")}, changes)
			require.NoError(t, i.Revert(t.Context()))
			require.FileExists(t, n.other("10-other.conflist"))
			require.FileExists(t, n.plugin("portmap"))
			require.FileExists(t, n.plugin("loopback"))
		})
	}
}

// Our configuration replaced one that names the plugin, which is restored.
func TestCNI10_APluginOfTheConfigurationThatOursReplacedStays(t *testing.T) {
	for _, content := range []string{portmapConf, awsConf} {
		n := newNode(t)
		i := n.install()
		n.source("extra", script("0.3.1", "1.0.0"))
		content = strings.Replace(content, `"portmap"`, `"extra"`, 1)
		write(t, n.confFile(), content, 0o600)
		require.NoError(t, i.Apply(t.Context()))
		require.NoError(t, i.Revert(t.Context()))
		require.FileExists(t, n.plugin("extra"))
		require.NoFileExists(t, n.plugin("cilium-cni"), "only our configuration named it, and it is gone")
	}
}

// apart is a plan of two steps, as both an agent and its installer need: the plugins before the
// agent starts, the configuration after it.
func apart(t *testing.T, n node, u cniinstall.Uninstall) *bootstrap.Plan {
	t.Helper()
	plugins := n.install().Install
	conf := plugins
	plugins.Config, plugins.ConfName, conf.Plugins = nil, "", nil
	return n.planOf(u, bootstrap.Step{Name: "plugins", Wants: plugins}, bootstrap.Step{Name: "configuration", Wants: conf, After: []string{"plugins"}})
}

// The configuration was edited, and stays with its plugins, although another step installed
// them; also if they are newer than it, and if only their step is reverted.
func TestCNI10_PluginsAndConfigurationInTwoSteps(t *testing.T) {
	for name, upgrade := range map[string]bool{"installed once": false, "plugins upgraded": true} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.source("extra", script("1.0.0"))
			apply := func() {
				_, err := apart(t, n, cniinstall.Uninstall{}).Apply(t.Context())
				require.NoError(t, err)
			}
			apply()
			if upgrade {
				n.source("cilium-cni", script("0.3.1", "1.0.0"))
				apply()
			}
			edited := strings.Replace(agentConf, "false", "true", 1)
			write(t, n.confFile(), edited, 0o600)

			_, err := apart(t, n, cniinstall.Uninstall{}).Uninstall(t.Context())
			require.ErrorIs(t, err, ledger.ErrChanged)
			require.FileExists(t, n.plugin("cilium-cni"))
			require.FileExists(t, n.plugin("loopback"))
			require.NoFileExists(t, n.plugin("extra"))

			require.NoError(t, os.Remove(n.confFile()))
			_, err = apart(t, n, cniinstall.Uninstall{}).Uninstall(t.Context())
			require.NoError(t, err)
			require.NoDirExists(t, n.bin)

			apply()
			plan := apart(t, n, cniinstall.Uninstall{})
			plan.Steps = plan.Steps[:1]
			report, err := plan.Revert(t.Context())
			require.NoError(t, err)
			require.Contains(t, adviceOf(report), "leave "+n.plugin("cilium-cni")+` to agent "agent", which wants it too`, "the configuration's step does")
			require.FileExists(t, n.plugin("cilium-cni"))
			require.NoFileExists(t, n.plugin("extra"))
			_, err = apart(t, n, cniinstall.Uninstall{}).Uninstall(t.Context())
			require.NoError(t, err, "the configuration goes, and then the plugins")
			require.NoDirExists(t, n.bin)
		})
	}
}
