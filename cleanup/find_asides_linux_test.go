// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

// immutable makes a file immutable until release is called.
func immutable(t testing.TB, path string) (release func()) {
	t.Helper()
	run(t, "chattr", "+i", path)
	release = func() { run(t, "chattr", "-i", path) }
	t.Cleanup(func() {
		if _, err := os.Lstat(path); err == nil {
			release()
		}
	})
	return release
}

// names lists a directory, sorted.
func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var out []string
	for _, entry := range entries {
		out = append(out, entry.Name())
	}
	return out
}

// If a configuration cannot regain its name, ours stays in that directory only; the next run
// completes the removal.
func TestCLN4_NoDirectoryIsLeftWithoutAConfiguration(t *testing.T) {
	testns.Root(t)
	dir := testns.TempDir(t)
	conf, other := filepath.Join(dir, "etc/cni/net.d"), filepath.Join(dir, "other")
	files(t, dir, "etc/cni/net.d/05-cilium.conflist", "etc/cni/net.d/05-cilium.conf", "etc/cni/net.d/10-a.conf.cilium_bak",
		"etc/cni/net.d/20-b.conf.cilium_bak", "other/05-cilium.conflist", "other/10-a.conf.cilium_bak", "opt/cni/bin/cilium-cni")
	c := filesOnly(dir)
	c.Ownership.Files = append(c.Ownership.Files, filepath.Join(other, "05-cilium.conflist"))
	c.Ownership.SetAside = append(c.Ownership.SetAside, other+"/*.cilium_bak")
	c.Ownership = excepting(c.Ownership)
	release := immutable(t, filepath.Join(conf, "10-a.conf.cilium_bak"))

	err := c.Apply(context.Background())
	require.ErrorIs(t, err, unix.EPERM)
	require.ErrorContains(t, err, "restore configuration set aside "+conf+"/10-a.conf.cilium_bak: rename "+conf+"/10-a.conf.cilium_bak "+conf+"/10-a.conf: operation not permitted (needs root with CAP_DAC_OVERRIDE, CAP_FOWNER and CAP_CHOWN, or the owner, and no immutable attribute")
	for _, ours := range []string{"05-cilium.conflist", "05-cilium.conf"} {
		require.ErrorContains(t, err, "remove file "+conf+"/"+ours+": left as it is, because 10-a.conf.cilium_bak beside it did not get its name back")
	}
	require.Equal(t, []string{"05-cilium.conf", "05-cilium.conflist", "10-a.conf.cilium_bak", "20-b.conf"}, names(t, conf))
	require.Equal(t, []string{"10-a.conf"}, names(t, other))
	require.Empty(t, names(t, filepath.Join(dir, "opt/cni/bin")))

	release()
	apply(t, c)
	require.Equal(t, []string{"10-a.conf", "20-b.conf"}, names(t, conf))
}

// A cleanup that is stopped at any item leaves a configuration in the directory.
func TestCLN3_AConfigurationIsThereAtAnyTime(t *testing.T) {
	testns.Root(t)
	dir := t.TempDir()
	conf, bin := filepath.Join(dir, "etc/cni/net.d"), filepath.Join(dir, "opt/cni/bin")
	files(t, dir, "etc/cni/net.d/05-cilium.conflist", "etc/cni/net.d/10-a.conf.cilium_bak", "opt/cni/bin/cilium-cni")
	c := filesOnly(dir)
	var seen []string
	c.Progress = func(int, int, string, error) {
		seen = append(seen, strings.Join(append(names(t, conf), names(t, bin)...), " "))
	}
	require.NoError(t, c.Apply(context.Background()))
	require.Equal(t, []string{"05-cilium.conflist 10-a.conf cilium-cni", "10-a.conf cilium-cni", "10-a.conf"}, seen)
}

// If a backup already existed, a number follows the suffix.
func TestCLN2_SetAsideWithANumber(t *testing.T) {
	testns.Root(t)
	dir := t.TempDir()
	conf := filepath.Join(dir, "etc/cni/net.d")
	var made []string
	for _, name := range []string{
		"05-cilium.conflist.cilium_bak.3",
		"10-a.conf.cilium_bak", "10-a.conf.cilium_bak.2", "10-a.conf.cilium_bak.10", "10-a.conf.cilium_bak.11/",
		"20-b.conf.cilium_bak.1",
		"30-c.conf", "30-c.conf.cilium_bak.1",
		"40-d.conf.cilium_bak.1.cilium_bak", "50-e.conf.cilium_bak.cilium_bak.1",
		"60-f.conf.cilium_bak.01", "60-f.conf.cilium_bak.+1", "60-f.conf.cilium_bak.", "60-f.conf.cilium_bak.x", "60-f.conf.cilium_bak1", "60-f.conf.1", ".cilium_bak.1",
		"60-f.conf.cilium_bak.99999999999999999999",
	} {
		made = append(made, "etc/cni/net.d/"+name)
	}
	files(t, dir, made...)
	c := filesOnly(dir)
	inv := listed(t, context.Background(), c)
	require.Equal(t, []string{
		"configuration set aside " + conf + "/10-a.conf.cilium_bak.10",
		"configuration set aside " + conf + "/20-b.conf.cilium_bak.1",
		"file " + conf + "/05-cilium.conflist.cilium_bak.3",
	}, objects(inv.Items))
	left := func(name, why string) cleanup.Item {
		return cleanup.Item{Kind: "configuration set aside", Object: conf + "/" + name, Detail: why}
	}
	require.ElementsMatch(t, []cleanup.Item{
		left("10-a.conf.cilium_bak.11", "it is a directory"),
		left("10-a.conf.cilium_bak.2", "10-a.conf.cilium_bak.10, set aside after it, gets the name 10-a.conf"),
		left("10-a.conf.cilium_bak", "10-a.conf.cilium_bak.10, set aside after it, gets the name 10-a.conf"),
		left("30-c.conf.cilium_bak.1", "30-c.conf exists"),
		left("40-d.conf.cilium_bak.1.cilium_bak", "it was set aside twice"),
		left("50-e.conf.cilium_bak.cilium_bak.1", "it was set aside twice"),
	}, inv.Left)
	apply(t, c)
	for name, want := range map[string]string{"10-a.conf": "10-a.conf.cilium_bak.10", "20-b.conf": "20-b.conf.cilium_bak.1", "30-c.conf": "30-c.conf", "10-a.conf.cilium_bak.2": "10-a.conf.cilium_bak.2"} {
		got, err := os.ReadFile(filepath.Join(conf, name))
		require.NoError(t, err)
		require.Equal(t, "etc/cni/net.d/"+want, string(got))
	}
}

// A file matched by two rules, or by one rule through two paths, is one item.
func TestCLN1_FilesAreListedOnce(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir := testns.TempDir(t)
	files(t, dir, "real/05-cilium.conf", "real/05-cilium.conf.cilium_bak", "real/10-a.conf.cilium_bak", "real/30-c.conf.cilium_bak/", "real/state/x", "real/dir/", "link -> real", "bound/")
	require.NoError(t, unix.Mount(filepath.Join(dir, "real"), filepath.Join(dir, "bound"), "", unix.MS_BIND, ""))
	require.NoError(t, os.Link(filepath.Join(dir, "real/05-cilium.conf"), filepath.Join(dir, "real/05-cilium.conflist")))
	var own cleanup.Ownership
	for _, way := range []string{"real", "real", "link", "bound"} {
		at := filepath.Join(dir, way)
		own.Files = append(own.Files, at+"/05-cilium.conf", at+"/05-cilium.conflist", at+"/05-cilium.conf.cilium_bak", at+"/dir")
		own.SetAside = append(own.SetAside, at+"/*.cilium_bak", at+"/*_bak")
		own.StateDirs = append(own.StateDirs, at+"/state")
	}
	c := cleanup.Leftovers{Ownership: excepting(own), Scope: "all-state"}
	inv := listed(t, context.Background(), c)
	real := filepath.Join(dir, "real")
	require.Equal(t, []string{
		"state directory " + real + "/state",
		"configuration set aside " + real + "/10-a.conf.cilium_bak",
		"file " + real + "/05-cilium.conf",
		"file " + real + "/05-cilium.conflist", // another name of the same file
		"file " + real + "/05-cilium.conf.cilium_bak",
	}, objects(inv.Items))
	require.Equal(t, []string{"configuration set aside " + real + "/30-c.conf.cilium_bak", "file " + real + "/dir"}, objects(inv.Left))
	apply(t, c)
	require.Equal(t, []string{"10-a.conf", "30-c.conf.cilium_bak", "dir"}, names(t, real))
}

// No record says that a configuration that an agent's own installer set aside was in use: it
// does not come back to take the pods of another network, nor without its plugins.
func TestCLN12_WhatWasSetAsideTakesNoNetworkAway(t *testing.T) {
	testns.Root(t)
	conf := func(plugin string) string {
		return `{"cniVersion":"1.0.0","name":"n","plugins":[{"type":"` + plugin + `"}]}`
	}
	const works, gone = "acme-works", "acme-gone"
	for name, c := range map[string]struct {
		beside map[string]string // files of the directory
		why    string            // 10-a.conflist stays aside; empty: it comes back
	}{
		"alone":                    {nil, ""},
		"before a working network": {map[string]string{"10-b.conflist": conf(works)}, "it would be read before the network of 10-b.conflist"},
		"after it":                 {map[string]string{"09-b.conflist": conf(works)}, ""},
		"before a single plugin":   {map[string]string{"20-b.conf": `{"name":"n","type":"` + works + `"}`}, "it would be read before the network of 20-b.conf"},
		"before a list in a .conf": {map[string]string{"20-b.conf": conf(works)}, ""}, // which no runtime loads
		"before a broken network":  {map[string]string{"20-b.conflist": conf(gone)}, ""},
		"before loopback":          {map[string]string{"99-loopback.conf": `{"name":"lo","type":"loopback"}`}, ""},
		"before podman's":          {map[string]string{"87-podman-bridge.conflist": conf(works)}, ""},
		"before CRI-O's":           {map[string]string{"100-crio-bridge.conflist": conf(works), "11-crio-ipv4-bridge.conflist": conf(works)}, ""},
		"before the agent's own":   {map[string]string{"20-cilium.conflist": conf(works), "05-cilium.conflist": conf(works)}, "it would be read before the network of 20-cilium.conflist"},
		"before another, too":      {map[string]string{"20-b.conflist.cilium_bak": conf(works)}, ""},
		"without its plugin":       {map[string]string{"10-a.conflist.cilium_bak": conf(gone)}, "no network works by it without " + gone},
		"an older version":         {map[string]string{"10-a.conflist.cilium_bak.1": "{", "20-b.conflist": conf(works)}, "it would be read before the network of 20-b.conflist"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			at := filepath.Join(dir, "etc/cni/net.d")
			files(t, dir, "opt/cni/bin/"+works, "opt/cni/bin/loopback", "etc/cni/net.d/")
			for _, plugin := range []string{works, "loopback"} {
				require.NoError(t, os.Chmod(filepath.Join(dir, "opt/cni/bin", plugin), 0o755))
			}
			aside := filepath.Join(at, "10-a.conflist.cilium_bak")
			require.NoError(t, os.WriteFile(aside, []byte(conf(works)), 0o600))
			for name, content := range c.beside {
				require.NoError(t, os.WriteFile(filepath.Join(at, name), []byte(content), 0o600))
			}
			l := filesOnly(dir)
			inv := listed(t, context.Background(), l)
			require.NoError(t, l.Remove(context.Background(), inv.Items))
			if c.why == "" {
				require.NoFileExists(t, aside)
				require.FileExists(t, filepath.Join(at, "10-a.conflist"))
				return
			}
			require.FileExists(t, aside)
			require.NoFileExists(t, filepath.Join(at, "10-a.conflist"))
			for _, left := range inv.Left {
				require.Contains(t, left.Detail, c.why)
				require.Contains(t, left.Detail, "; mv "+left.Object+" "+filepath.Join(at, "10-a.conflist")+" restores it")
			}
		})
	}
}
