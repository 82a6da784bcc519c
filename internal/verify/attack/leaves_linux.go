// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing/fstest"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/sysctl"
)

func leafTargets() []target {
	inDir := func(name string) func(func(string) error) func(*arena) error { // pub/p/name
		return func(work func(string) error) func(*arena) error {
			return naivelyBelow(func(path string) error { return work(strings.TrimSuffix(path, "x") + name) })
		}
	}
	return []target{{
		name: "write a configuration", pairs: parent, setup: besideLink(configured("earlier")), naive: inDir("key")(overwrite),
		try: func(a *arena) error { return configure(a, "pub/p", "ours") },
	}, {
		name: "undo a configuration, beside a link", pairs: parent, try: undo, slow: true, naive: inDir("key")(overwrite),
		setup: configuredOver(besideLink(configured("earlier")), func(a *arena) {
			a.outside(func() error { return configure(a, "victim", "ours") })
		}),
	}, {
		name: "undo a configuration, beside root's", pairs: roots, try: undo, slow: true, naive: inDir("key")(overwrite),
		setup: configuredOver(besideRoots(configured("earlier"), configured("root's")), nil),
	}, {
		name: "drop-in of sysctl", pairs: parent, setup: besideLink(empty), naive: inDir("99-ours.conf")(makeNew),
		try: func(a *arena) error {
			return sysctl.DropIn{Dir: a.path("pub/p"), Name: "99-ours.conf", Kernel: sysctl.Kernel{Files: bootstraptest.NewKernel("eth0")},
				Settings: []sysctl.Setting{{Key: "net.ipv4.ip_forward", Value: "1"}}}.Apply(a.ctx)
		},
	}, {
		slow: true, name: "install a plugin", pairs: parent, setup: besideLink(holding("earlier")), naive: naivelyBelow(overwrite),
		try: func(a *arena) error { return plugin(a).Apply(a.ctx) },
	}, {
		name: "uninstall a plugin", pairs: parent, try: undo, slow: true, naive: naivelyBelow(os.Remove),
		setup: installed(plugin, besideLink(empty), func(a *arena) { a.file("victim/x", script, 0o755, 0) }),
	}, {
		name: "uninstall a plugin, beside root's", pairs: roots, try: undo, slow: true, naive: naivelyBelow(os.Remove),
		setup: installed(plugin, besideRoots(empty, func(a *arena, dir string) { a.file(dir+"/x", script+"# root's", 0o755, 0) }), nil),
	}, {
		slow: true, name: "install a CNI configuration", pairs: parent, setup: besideLink(cniDir(theirs)), naive: inDir(theirs)(aside),
		try: func(a *arena) error { return network(a).Apply(a.ctx) },
	}, {
		name: "bring a CNI configuration back, beside root's", pairs: roots, try: undo, slow: true, naive: inDir(theirs)(back),
		setup: installed(network, besideRoots(cniDir(theirs), func(a *arena, dir string) {
			a.file(dir+"/"+theirs, "root's", 0o644, 0)
			a.file(dir+"/"+theirs+suffix, "root's, too", 0o644, 0)
		}), nil),
	}, {
		name: "uninstall a CNI configuration", pairs: parent, try: undo, slow: true, naive: inDir(theirs)(back),
		setup: installed(network, besideLink(cniDir(theirs)), func(a *arena) {
			a.outside(func() error { return aside(a.path("victim/" + theirs)) })
			a.file("victim/"+ours, conflist, 0o600, 0)
		}),
	}, {
		name: "uninstall a CNI configuration, beside root's", pairs: roots, try: undo, slow: true, naive: inDir(ours)(os.Remove),
		setup: installed(network, besideRoots(empty, func(a *arena, dir string) { a.file(dir+"/"+ours, conflist+" ", 0o600, 0) }), nil),
	}, {
		name: "clean a directory up, beside a link", pairs: parent, try: undo, slow: true, naive: naivelyBelow(removeTree),
		setup: listed(besideLink(stateDir), cleanup.Ownership{StateDirs: []string{"pub/p/x"}}),
	}, {
		name: "clean a directory up, beside root's", pairs: roots, try: undo, slow: true, naive: naivelyBelow(removeTree),
		setup: listed(besideRoots(stateDir, stateDir), cleanup.Ownership{StateDirs: []string{"pub/p/x"}}),
	}, {
		slow: true, name: "find and clean a directory up", pairs: parent, naive: naivelyBelow(removeTree), setup: besideLink(stateDir),
		try: func(a *arena) error { return agent(a, cleanup.Ownership{StateDirs: []string{"pub/p/x"}}).Apply(a.ctx) },
	}, {
		slow: true, name: "find and clean a file up", pairs: parent, naive: naivelyBelow(os.Remove), setup: besideLink(holding("")),
		try: func(a *arena) error { return agent(a, cleanup.Ownership{Files: []string{"pub/p/x"}}).Apply(a.ctx) },
	}, {
		slow: true, name: "find and clean up what was set aside", pairs: parent, naive: inDir(theirs)(back), setup: besideLink(setAside),
		try: func(a *arena) error {
			return agent(a, cleanup.Ownership{SetAside: []string{"pub/p/*" + suffix}}).Apply(a.ctx)
		},
	}, {
		name: "clean what is in a directory up", pairs: []pair{{"p/x/sub", "p/x/link"}}, try: undo, slow: true,
		naive: func(a *arena) error { return removeTreeFollowing(a.path("pub/p/x")) },
		setup: listed(func(a *arena) {
			a.dir("pub/p", 0o755, nobody)
			stateDir(a, "pub/p")
			a.do(os.Lchown(a.path("pub/p/x"), nobody, nobody))
			a.link("pub/p/x/link", "../../../victim")
		}, cleanup.Ownership{StateDirs: []string{"pub/p/x"}}),
	}, {
		name: "clean a file up", pairs: parent, try: undo, slow: true, naive: naivelyBelow(os.Remove),
		setup: listed(besideLink(holding("")), cleanup.Ownership{Files: []string{"pub/p/x"}}),
	}, {
		name: "clean a mount up", pairs: parent, try: undo, slow: true, mount: true, naive: naivelyBelow(unmountOurs),
		setup: listed(func(a *arena) {
			besideLink(holdingDir)(a)
			for _, name := range []string{"pub/p/x", "victim/x"} {
				a.do(unix.Mount("root's", a.path(name), "tmpfs", 0, ""))
			}
		}, cleanup.Ownership{Mounts: []cleanup.MountRule{{Path: "pub/p/x", Type: "tmpfs"}}}),
	}, {
		name: "clean pins up", pairs: parent, try: undo, slow: true, mount: true, naive: naivelyBelow(removePins),
		setup: listed(pinned, cleanup.Ownership{Pins: []string{"agent"}}),
	}, {
		name: "find and clean pins up", pairs: parent, slow: true, mount: true, naive: naivelyBelow(removePins), setup: pinned,
		try: func(a *arena) error { return agent(a, cleanup.Ownership{Pins: []string{"agent"}}).Apply(a.ctx) },
	}, {
		name: "clean up what was set aside", pairs: parent, try: undo, slow: true, naive: inDir(theirs)(back),
		setup: listed(besideLink(setAside), cleanup.Ownership{SetAside: []string{"pub/p/*" + suffix}}),
	}}
}

// configure writes a configuration of one key to the directory.
func configure(a *arena, dir, value string) error {
	_, err := configdir.Write(a.ctx, a.path(dir), config(a, value))
	return err
}

func config(a *arena, value string) *configresolve.Config {
	c, err := configresolve.Resolve(a.ctx, configresolve.Static("", map[string]string{"key": value}))
	a.do(err)
	return c
}

func configured(value string) func(*arena, string) {
	return func(a *arena, dir string) {
		if a.missing(dir) {
			a.do(os.Symlink("..earlier", a.path(dir+"/..data"))) // otherwise its content is foreign
			a.do(configure(a, dir, value))
		}
	}
}

// configuredOver is setup, followed by a configuration recorded and written to pub/p.
func configuredOver(setup, trap func(*arena)) func(*arena) {
	return recordedAfter(setup, func(a *arena) ledger.Wanter {
		return configdir.Writer{Path: a.path("pub/p"), Config: config(a, "ours")}
	}, trap)
}

const (
	ours     = "05-ours.conflist"
	theirs   = "10-theirs.conflist"
	suffix   = ".aside"
	conflist = `{"cniVersion":"1.0.0","name":"net","plugins":[{"type":"x"}]}`
	script   = "#!/bin/sh\necho '{\"cniVersion\":\"1.0.0\",\"supportedVersions\":[\"1.0.0\"]}'\n"
)

// cniDir fills a directory with a configuration under the name.
func cniDir(name string) func(*arena, string) {
	return func(a *arena, dir string) { a.file(dir+"/"+name, conflist, 0o644, 0) }
}

// setAside makes a file that was set aside, and names no plugin that has to be there.
func setAside(a *arena, dir string) { a.file(dir+"/"+theirs+suffix, "{}", 0o644, 0) }

func aside(path string) error { return os.Rename(path, path+suffix) }
func back(path string) error  { return os.Rename(path+suffix, path) }

// plugin installs the plugin x in pub/p.
func plugin(a *arena) cniinstall.Install {
	return cniinstall.Install{
		Plugins: fstest.MapFS{"x": {Data: []byte(script), Mode: 0o755}}, Names: []string{"x"}, BinDir: a.path("pub/p"),
	}
}

// network installs a configuration, the only one in pub/p.
func network(a *arena) cniinstall.Install {
	bin := a.path("state/bin")
	if err := os.Mkdir(bin, 0o700); err == nil {
		a.file("state/bin/x", script, 0o755, 0)
	} else if !errors.Is(err, fs.ErrExist) {
		a.do(err)
	}
	return cniinstall.Install{
		Config: cniinstall.Whole(conflist), ConfName: ours, ConfDir: a.path("pub/p"), Exclusive: true, BinDir: bin,
		Optional: []string{"loopback"},
	}
}

// installed is setup, followed by a recorded installation.
func installed(install func(*arena) cniinstall.Install, setup, trap func(*arena)) func(*arena) {
	return recordedAfter(setup, func(a *arena) ledger.Wanter { return install(a) }, trap)
}

// stateDir fills a directory with a directory x of root's, left by an agent.
func stateDir(a *arena, dir string) {
	a.dir(dir+"/x", 0o755, 0)
	a.dir(dir+"/x/sub", 0o755, 0)
	a.file(dir+"/x/file", "", 0o644, 0)
	a.file(dir+"/x/sub/secret", "", 0o644, 0)
}

// pinned mounts bpf on pub/p/x and on victim/x, with a directory of pins in each.
func pinned(a *arena) {
	besideLink(holdingDir)(a)
	for _, name := range []string{"pub/p/x", "victim/x"} {
		a.do(unix.Mount("bpf", a.path(name), "bpf", 0, ""))
		a.do(os.Mkdir(a.path(name+"/agent"), 0o700))
	}
}

// agent is the cleanup of the owned objects, by paths below the root of the arena.
func agent(a *arena, own cleanup.Ownership) cleanup.Leftovers {
	inArena := cleanup.Ownership{StateDirs: a.paths(own.StateDirs), Files: a.paths(own.Files), SetAside: a.paths(own.SetAside), Pins: own.Pins}
	for _, m := range own.Mounts {
		inArena.Mounts = append(inArena.Mounts, cleanup.MountRule{Path: a.path(m.Path), Type: m.Type})
		inArena.Exceptions = append(inArena.Exceptions, cleanup.Exception{Kind: "mount", Name: a.path(m.Path)})
	}
	for _, path := range inArena.Files {
		inArena.Exceptions = append(inArena.Exceptions, cleanup.Exception{Kind: "file", Name: path})
	}
	for _, path := range inArena.StateDirs {
		inArena.Exceptions = append(inArena.Exceptions, cleanup.Exception{Kind: "directory", Name: path})
	}
	for _, pattern := range inArena.SetAside {
		inArena.Exceptions = append(inArena.Exceptions, cleanup.Exception{Kind: "cni-directory", Name: filepath.Dir(pattern)})
	}
	return cleanup.Leftovers{Ownership: inArena, Scope: "all-state", BPFRoots: []string{a.path("pub/p/x")}, CgroupRoot: a.path("state")}
}

// listed is setup, followed by listing the owned objects; undo removes them.
func listed(setup func(*arena), own cleanup.Ownership) func(*arena) {
	return func(a *arena) {
		setup(a)
		c := agent(a, own)
		found, err := c.Inventory(a.ctx)
		a.do(err)
		if a.err == nil && len(found.Items) != 1 {
			a.do(errors.New("cleanup does not find the objects"))
		}
		a.undo = func(ctx context.Context) error { return c.Remove(ctx, found.Items) }
	}
}

func (a *arena) paths(names []string) (paths []string) {
	for _, name := range names {
		paths = append(paths, filepath.Join(a.root, name))
	}
	return paths
}
