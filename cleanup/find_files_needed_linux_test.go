// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

const chained = `{"cniVersion":"1.0.0","name":"pods","plugins":[{"type":"bridge"},{"type":"cilium-cni"}]}`

// The agent's plugin stays as long as a configuration names it that this cleanup does not
// remove, whoever wrote it.
func TestCLN12_APluginThatAConfigurationNamesStays(t *testing.T) {
	testns.Root(t)
	const list = `{"cniVersion":"1.0.0","name":"pods","plugins":[{"type":"bridge"}]}`
	for name, c := range map[string]struct {
		files map[string]string
		by    string // what keeps the plugin
	}{
		"its own, which goes":        {map[string]string{"05-cilium.conflist": chained}, ""},
		"none":                       {map[string]string{"10-theirs.conflist": list}, ""},
		"chained by hand":            {map[string]string{"05-cilium.conflist": chained, "10-theirs.conflist": chained}, "10-theirs.conflist names it"},
		"another name":               {map[string]string{"10-cilium-and-more.conflist": chained}, "10-cilium-and-more.conflist names it"},
		"one that comes back":        {map[string]string{"10-theirs.conflist.cilium_bak": chained}, "10-theirs.conflist names it"},
		"in the network's directory": {map[string]string{"10-theirs.conflist": list, "pods/x.conf": `{"type":"cilium-cni"}`}, "pods/x.conf names it"},
		"one that cannot be read":    {map[string]string{"11-loop.conf": ""}, "cannot tell whether"},
		"one that no runtime sees":   {map[string]string{"10-theirs.conflist.bak": chained}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			conf, plugin := filepath.Join(dir, "etc/cni/net.d"), filepath.Join(dir, "opt/cni/bin/cilium-cni")
			files(t, dir, "opt/cni/bin/cilium-cni", "opt/cni/bin/bridge", "etc/cni/net.d/pods/")
			require.NoError(t, errors.Join(os.Chmod(plugin, 0o755), os.Chmod(filepath.Join(dir, "opt/cni/bin/bridge"), 0o755)))
			for file, content := range c.files {
				if content == "" {
					require.NoError(t, os.Symlink("11-loop.conf", filepath.Join(conf, "11-loop.conf")))
					continue
				}
				require.NoError(t, os.WriteFile(filepath.Join(conf, file), []byte(content), 0o600))
			}
			l := filesOnly(dir)
			inv := listed(t, context.Background(), l)
			require.Equal(t, c.by == "", slices.Contains(objects(inv.Items), "file "+plugin))
			require.NoError(t, l.Remove(context.Background(), inv.Items))
			if c.by == "" {
				require.NoFileExists(t, plugin)
				return
			}
			require.FileExists(t, plugin)
			at := slices.IndexFunc(inv.Left, func(i cleanup.Item) bool { return i.Object == plugin })
			require.Contains(t, inv.Left[at].Detail, c.by)
		})
	}
}

// A plugin is looked at again before it goes: a configuration may have come, or the plan
// may leave the agent's own.
func TestCLN12_APluginThatAConfigurationNamesByNowStays(t *testing.T) {
	testns.Root(t)
	for name, prepare := range map[string]func(t *testing.T, conf string, found []cleanup.Item) []cleanup.Item{
		"it came": func(t *testing.T, conf string, found []cleanup.Item) []cleanup.Item {
			require.NoError(t, os.WriteFile(filepath.Join(conf, "99-new.conflist"), []byte(chained), 0o600))
			return found
		},
		"it was not selected": func(_ *testing.T, _ string, found []cleanup.Item) []cleanup.Item {
			return slices.DeleteFunc(found, func(i cleanup.Item) bool { return filepath.Ext(i.Object) == ".conflist" })
		},
		"it cannot be removed": func(t *testing.T, conf string, found []cleanup.Item) []cleanup.Item {
			immutable(t, filepath.Join(conf, "05-cilium.conflist"))
			return found
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := testns.TempDir(t)
			conf, plugin := filepath.Join(dir, "etc/cni/net.d"), filepath.Join(dir, "opt/cni/bin/cilium-cni")
			files(t, dir, "etc/cni/net.d/05-cilium.conflist", "opt/cni/bin/cilium-cni")
			require.NoError(t, os.WriteFile(filepath.Join(conf, "05-cilium.conflist"), []byte(chained), 0o600))
			l := filesOnly(dir)
			l.Ownership = excepting(l.Ownership)
			slices.Reverse(l.Ownership.Files) // a plugin goes after the configurations in whatever order they are given
			inv := listed(t, context.Background(), l)
			err := l.Remove(context.Background(), prepare(t, conf, inv.Items))
			require.ErrorIs(t, err, ledger.ErrNeeded)
			require.ErrorContains(t, err, plugin+" stays: "+conf)
			require.FileExists(t, plugin)
		})
	}
}

// A configuration that is kept names its plugin, also in a directory that is reached by a link.
func TestCLN12_APluginOfAKeptConfigurationStays(t *testing.T) {
	testns.Root(t)
	dir := testns.TempDir(t)
	conf, plugin := filepath.Join(dir, "etc/cni/net.d/05-cilium.conflist"), filepath.Join(dir, "opt/cni/bin/cilium-cni")
	files(t, dir, "var/cni/net.d/05-cilium.conflist", "opt/cni/bin/cilium-cni", "etc/")
	require.NoError(t, os.Symlink("../var/cni", filepath.Join(dir, "etc/cni")))
	require.NoError(t, os.WriteFile(conf, []byte(chained), 0o600))
	l := filesOnly(dir)
	l.Keep = []string{conf}
	inv := listed(t, context.Background(), l)
	require.Empty(t, inv.Items)
	require.Equal(t, []string{"file " + plugin + ": " + conf + " names it"}, []string{inv.Left[0].String() + ": " + inv.Left[0].Detail})
}
