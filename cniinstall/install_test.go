// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/code"
)

const agentConf = `{
  "cniVersion": "1.0.0",
  "name": "cilium",
  "plugins": [
    {
      "type": "cilium-cni",
      "enable-debug": false,
      "log-file": "/var/run/cilium/cilium-cni.log"
    }
  ]
}
`

func TestCNI1_CNI9_FreshNode(t *testing.T) {
	n := newNode(t)
	i := n.install()
	before := tree(t, n.root)

	changes, err := i.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{
		"make directory " + n.root + "/opt",
		"make directory " + n.root + "/opt/cni",
		"make directory " + n.bin,
		"make directory " + n.root + "/etc",
		"make directory " + n.root + "/etc/cni",
		"make directory " + n.conf,
		"write file " + n.plugin("cilium-cni"),
		"write file " + n.plugin("loopback"),
		"write file " + n.confFile(),
	}, changes)
	require.Equal(t, before, tree(t, n.root), "Check changes nothing")

	require.NoError(t, i.Apply(t.Context()))
	requireContent(t, n.plugin("cilium-cni"), script("0.3.1", "0.4.0", "1.0.0"), 0o755)
	requireContent(t, n.plugin("loopback"), script("1.0.0"), 0o755)
	requireContent(t, n.confFile(), agentConf, 0o600)
	for _, dir := range []string{n.bin, n.conf} {
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, os.ModeDir|0o755, info.Mode())
	}
	requireConverged(t, i, n.root)

	require.NoError(t, i.Revert(t.Context()))
	require.Equal(t, before, tree(t, n.root), "as before, without the directories that were made")
}

var (
	_ ledger.Wanter     = cniinstall.Install{}
	_ bootstrap.Adviser = cniinstall.Install{}
	_ bootstrap.Action  = cniinstall.AgentConf{}
	_ bootstrap.Hosted  = cniinstall.AgentConf{}
	_ bootstrap.Undoer  = cniinstall.AgentConf{}
)

// A file that cannot be examined does not count as missing, and is not replaced.
func TestCNI1_AnErrorIsNotAMissingPlugin(t *testing.T) {
	n := newNode(t)
	n.source("loopback", "comes")
	require.NoError(t, os.MkdirAll(filepath.Dir(n.plugin("loopback")), 0o755))
	require.NoError(t, os.Symlink("loopback", n.plugin("loopback"))) // points to itself
	i := n.install()
	i.Config, i.Names = nil, []string{"loopback"}
	require.ErrorContains(t, i.Apply(t.Context()), n.plugin("loopback"))
	target, err := os.Readlink(n.plugin("loopback"))
	require.NoError(t, err)
	require.Equal(t, "loopback", target)
}

func TestCNI1_Policy(t *testing.T) {
	const present, coming = "is there", "comes"
	for name, tt := range map[string]struct {
		plugin    string
		replace   []string
		isPresent bool
		want      string
	}{
		"always replaces":                       {"cilium-cni", nil, true, coming},
		"always installs":                       {"cilium-cni", nil, false, coming},
		"loopback is left alone":                {"loopback", nil, true, present},
		"loopback is installed":                 {"loopback", nil, false, coming},
		"loopback is overwritten where asked":   {"loopback", []string{"loopback"}, true, coming},
		"if missing, there":                     {"cilium-cni", []string{"portmap"}, true, present},
		"if missing, missing":                   {"cilium-cni", []string{"portmap"}, false, coming},
		"none is replaced":                      {"cilium-cni", []string{}, true, present},
		"none but one":                          {"cilium-cni", []string{"cilium-cni"}, true, coming},
		"all":                                   {"cilium-cni", []string{"*"}, true, coming},
		"all and loopback":                      {"loopback", []string{"*", "loopback"}, true, coming},
		"loopback is left alone by default too": {"loopback", []string{"*"}, true, present},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.source(tt.plugin, coming)
			if tt.isPresent {
				write(t, n.plugin(tt.plugin), present, 0o755)
			}
			i := n.install()
			i.Config, i.Replace, i.Names = nil, tt.replace, []string{tt.plugin}
			require.NoError(t, i.Apply(t.Context()))
			requireContent(t, n.plugin(tt.plugin), tt.want, 0o755)
			requireConverged(t, i, n.root)
		})
	}
}

func TestCNI1_OptionalPluginMissing(t *testing.T) {
	n := newNode(t)
	require.NoError(t, os.Remove(filepath.Join(n.src, "loopback")))
	i := n.install()
	i.Names, i.Optional = []string{"cilium-cni"}, []string{"loopback", "bandwidth"}
	require.NoError(t, i.Apply(t.Context()))
	said, err := i.Advise(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"CNI plugin loopback is not among those to install, nor in " + n.bin, "CNI plugin bandwidth is not among those to install, nor in " + n.bin}, said)
	require.NoFileExists(t, n.plugin("loopback"))

	i.Names, i.Optional = []string{"cilium-cni", "bandwidth"}, nil
	_, err = i.Check(t.Context())
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "bandwidth")

	i.Names, i.Optional = nil, []string{"loopback"}
	i.Install = n.seeing(i.Install, n.src)
	n.source("loopback", script("1.0.0"))
	require.NoError(t, os.Chmod(filepath.Join(n.src, "loopback"), 0o755))
	said, err = i.Advise(t.Context())
	require.NoError(t, err)
	require.Empty(t, said)
}

// No configuration names loopback, yet every pod fails without it.
func TestCNI1_NoConfigurationWithoutLoopback(t *testing.T) {
	n := newNode(t)
	require.NoError(t, os.Remove(filepath.Join(n.src, "loopback")))
	i := n.install()
	_, err := i.Check(t.Context())
	require.ErrorIs(t, err, cniinstall.ErrPluginMissing)
	require.Equal(t, "cni.no-loopback", code.Of(err))
	require.EqualError(t, err, "container runtimes run loopback for every pod: plugin missing: loopback is not in "+n.bin)
	require.ErrorIs(t, i.Apply(t.Context()), cniinstall.ErrPluginMissing)
	require.NoFileExists(t, n.confFile())
	require.NoFileExists(t, n.plugin("cilium-cni"))

	alone := i
	alone.Config = nil // another program publishes it
	said, err := alone.Advise(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"CNI plugin loopback is not among those to install, nor in " + n.bin}, said)

	theirs := []string{n.bin}
	own, err := i.resolveDirs(t.Context(), cri.CNI{PluginDirs: theirs, ConfDir: n.conf, OwnLoopback: true}, nil)
	require.NoError(t, err)
	said, err = own.Advise(t.Context())
	require.NoError(t, err)
	require.Empty(t, said)
	_, err = own.Check(t.Context())
	require.NoError(t, err)
	asked, err := i.resolveDirs(t.Context(), cri.CNI{PluginDirs: theirs, ConfDir: n.conf}, nil)
	require.NoError(t, err)
	_, err = asked.Check(t.Context())
	require.ErrorIs(t, err, cniinstall.ErrPluginMissing)

	write(t, n.plugin("loopback"), script("1.0.0"), 0o755) // another installer adds it
	requireApplied(t, i, n.root)
}

// In a container, an absolute link of the node may lead nowhere: the plugin is installed in its
// place, and counts as there.
func TestCNI1_ALinkThatLeadsNowhereIsNoPlugin(t *testing.T) {
	n := newNode(t)
	require.NoError(t, os.MkdirAll(n.bin, 0o755))
	require.NoError(t, os.Symlink("/nowhere/loopback", n.plugin("loopback")))
	i := n.install()
	changes, err := i.Check(t.Context())
	require.NoError(t, err)
	require.Contains(t, changes, "replace file "+n.plugin("loopback"))
	requireApplied(t, i, n.root)
}

// Files in a source that are not plugins are left out; links within it are followed.
func TestCNI1_Source(t *testing.T) {
	n := newNode(t)
	require.NoError(t, os.Mkdir(filepath.Join(n.src, "dir"), 0o755))
	for _, name := range []string{".hidden", "cilium.conflist", "cilium.conf", "cilium.json"} {
		write(t, filepath.Join(n.src, name), "x", 0o644)
	}
	write(t, filepath.Join(n.src, "dir", "real"), script("1.0.0"), 0o755)
	require.NoError(t, os.Symlink("dir/real", filepath.Join(n.src, "linked")))
	i := n.install()
	require.NoError(t, i.Apply(t.Context()))
	requireContent(t, n.plugin("linked"), script("1.0.0"), 0o755)
	require.Equal(t, []string{"cilium-cni", "linked", "loopback"}, namesIn(t, n.bin))

	require.NoError(t, os.Symlink("/bin/sh", filepath.Join(n.src, "outside")))
	_, err := i.Check(t.Context())
	require.ErrorContains(t, err, "outside")

	i.Plugins = os.DirFS(t.TempDir())
	_, err = i.Check(t.Context())
	require.ErrorContains(t, err, "is empty")
	for _, name := range []string{"../evil", "sub/plugin", "/plugin", "..", ".", `a\b`, "a\x00b"} {
		i.Names = []string{name}
		_, err = i.Check(t.Context())
		require.ErrorContains(t, err, fmt.Sprintf("%q is not a file name", name))
	}
	i.Plugins, i.Names = os.DirFS(n.src), []string{"cilium.conflist"}
	require.ErrorContains(t, second(i.Check(t.Context())), `"cilium.conflist" has the name of a configuration`)
	i.Names = []string{"dir"}
	_, err = i.Check(t.Context())
	require.ErrorContains(t, err, "dir is a directory")
}

func TestCNI1_ModePutRightWithoutWriting(t *testing.T) {
	for _, mode := range []os.FileMode{0o644, 0o777, 0o700, os.ModeSetuid | 0o755} {
		n, i := installed(t)
		require.NoError(t, os.Chmod(n.plugin("cilium-cni"), mode))
		require.NoError(t, os.Chmod(n.confFile(), 0o644))
		before, err := os.Stat(n.plugin("cilium-cni"))
		require.NoError(t, err)

		changes, err := i.Check(t.Context())
		require.NoError(t, err)
		require.Len(t, changes, 2)
		require.Contains(t, changes[0], "set mode 0755 and owner ")
		require.NoError(t, i.Apply(t.Context()))
		after, err := os.Stat(n.plugin("cilium-cni"))
		require.NoError(t, err)
		require.True(t, os.SameFile(before, after), "the file is the same one")
		require.Equal(t, before.ModTime(), after.ModTime())
		requireContent(t, n.plugin("cilium-cni"), script("0.3.1", "0.4.0", "1.0.0"), 0o755)
		requireContent(t, n.confFile(), agentConf, 0o600)
		requireConverged(t, i, n.root)
	}
}

// A plugin that was not executable so far becomes so before a configuration names it.
func TestCNI2_ModePutRightBeforeConfiguration(t *testing.T) {
	n := newNode(t)
	i := n.install()
	write(t, n.plugin("cilium-cni"), script("0.3.1"), 0o644)
	n.source("cilium-cni", script("0.3.1"))
	err := i.Apply(t.Context())
	require.ErrorContains(t, err, "cilium-cni does not speak cniVersion 1.0.0, only 0.3.1")
	require.NoFileExists(t, n.confFile())

	i.Config = agentOf(cniinstall.Agent{CNIVersion: "0.3.1"})
	requireApplied(t, i, n.root)
}

func TestCNI1_WhatIsInTheWay(t *testing.T) {
	for what, put := range map[string]func(n node) error{
		"cilium-cni: a directory is in the way: move it away":         func(n node) error { return os.MkdirAll(n.plugin("cilium-cni"), 0o755) },
		"05-cilium.conflist: a directory is in the way: move it away": func(n node) error { return os.MkdirAll(n.confFile(), 0o755) },
	} {
		n := newNode(t)
		require.NoError(t, put(n))
		before := tree(t, n.root)
		i := n.install()
		for _, err := range []error{second(i.Check(t.Context())), i.Apply(t.Context())} {
			require.ErrorContains(t, err, what)
		}
		require.Equal(t, before, tree(t, n.root))
	}
}

func second(_ []string, err error) error { return err }

// A symbolic link is replaced; its target is not touched.
func TestCNI1_SymlinkIsNotFollowed(t *testing.T) {
	n := newNode(t)
	victim := filepath.Join(n.root, "victim")
	write(t, victim, "precious", 0o600)
	before := tree(t, n.root)[victim]
	for _, path := range []string{n.plugin("cilium-cni"), n.confFile()} {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.Symlink(victim, path))
	}
	n.ownLoopback()
	start := tree(t, n.root)
	i := n.install()
	require.NoError(t, i.Apply(t.Context()))
	require.Equal(t, before, tree(t, n.root)[victim])
	requireContent(t, n.confFile(), agentConf, 0o600)
	requireContent(t, n.plugin("cilium-cni"), script("0.3.1", "0.4.0", "1.0.0"), 0o755)
	require.NoError(t, i.Revert(t.Context()))
	require.Equal(t, start, tree(t, n.root), "the links are back")
}

func TestCNI9_DirectoriesStayTheSame(t *testing.T) {
	n := newNode(t)
	var was []os.FileInfo
	for _, dir := range []string{n.bin, n.conf} {
		require.NoError(t, os.MkdirAll(dir, 0o750))
		info, err := os.Stat(dir)
		require.NoError(t, err)
		was = append(was, info)
	}
	i := n.install()
	require.NoError(t, i.Apply(t.Context()))
	require.NoError(t, i.Revert(t.Context()))
	for k, dir := range []string{n.bin, n.conf} {
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.True(t, os.SameFile(was[k], info))
		require.Equal(t, was[k].Mode(), info.Mode())
	}
}

func TestBadFields(t *testing.T) {
	n := newNode(t)
	tests := map[string]func(*recorded){
		`"opt" is not an absolute path`:                 func(i *recorded) { i.BinDir = "opt" },
		`"etc" is not an absolute path`:                 func(i *recorded) { i.ConfDir = "etc" },
		`"more" is not an absolute path`:                func(i *recorded) { i.AlsoBinDirs = []string{"more"} },
		`"05-cilium.txt": no runtime loads it`:          func(i *recorded) { i.ConfName = "05-cilium.txt" },
		`"../05-cilium.conflist": no runtime loads it`:  func(i *recorded) { i.ConfName = "../05-cilium.conflist" },
		`"sub/05-cilium.conflist": no runtime loads it`: func(i *recorded) { i.ConfName = "sub/05-cilium.conflist" },
		"no file name given for the CNI configuration":  func(i *recorded) { i.ConfName = "" },
		"is not UTF-8":          func(i *recorded) { i.Config = agentOf(cniinstall.Agent{LogFile: "\xff"}) },
		n.src + "/loopback/bin": func(i *recorded) { i.BinDir = n.src + "/loopback/bin" },
	}
	before := tree(t, n.root)
	for want, set := range tests {
		i := n.install()
		set(&i)
		require.ErrorContains(t, second(i.Check(t.Context())), want)
		require.ErrorContains(t, i.Apply(t.Context()), want)
	}
	require.Equal(t, before, tree(t, n.root))
}

// A directory that is a dangling link was set up on purpose, and its target may appear: it is
// neither made nor removed.
func TestCNI9_LinkThatLeadsNowhere(t *testing.T) {
	for _, recorded := range []bool{true, false} {
		n := newNode(t)
		if !recorded {
			n.state = ""
		}
		require.NoError(t, os.MkdirAll(n.root+"/etc", 0o755))
		require.NoError(t, os.Symlink("/nowhere", n.root+"/etc/cni"))
		before := tree(t, n.root)
		err := n.install().Apply(t.Context())
		require.ErrorContains(t, err, n.root+"/etc/cni: it is a link that leads nowhere")
		require.Equal(t, before, tree(t, n.root))
	}
}
