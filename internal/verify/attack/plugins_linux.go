// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/hosttool"
)

// pluginTargets execute a plugin of root's, unless it is the attacker's by then.
func pluginTargets() []target {
	his := []pair{{"p", "his"}}
	return []target{{
		name: "run a plugin for its version", pairs: his, setup: pluginBesideHis, slow: true, naive: runIfRoots,
		try: func(a *arena) error { return asked(a).Apply(a.ctx) },
	}, {
		name: "execute a program", pairs: his, setup: pluginBesideHis, slow: true, naive: runIfRoots,
		try: func(a *arena) error {
			err := hosttool.Command{Path: a.path("pub/p/x"), Args: []string{"x"}}.Run(a.ctx)
			if errors.Is(err, hosttool.ErrUntrusted) {
				return nil
			}
			return err
		},
	}}
}

// pluginBesideHis makes a plugin of root's in a directory of root's, and the attacker's in
// his own. The directory with both is his.
func pluginBesideHis(a *arena) {
	a.dir("pub/p", 0o755, 0)
	a.file("pub/p/x", script, 0o755, 0)
	a.dir("pub/his", 0o755, nobody)
	a.file("pub/his/x", "#!/bin/sh\necho his >"+a.path("victim/ran")+"\n"+strings.TrimPrefix(script, "#!/bin/sh\n"), 0o755, nobody)
}

// asked is an installation that asks the plugin for its versions, if that is safe.
func asked(a *arena) cniinstall.Install {
	return cniinstall.Install{
		Config: cniinstall.Whole(conflist), ConfName: ours, ConfDir: a.path("state/net.d"), BinDir: a.path("pub/p"), Optional: []string{"loopback"},
	}
}

// runIfRoots runs the plugin if it is root's, and so is its directory.
func runIfRoots(a *arena) error {
	for _, name := range []string{"pub/p", "pub/p/x"} {
		info, err := os.Stat(a.path(name))
		if err != nil {
			return err
		}
		if info.Sys().(*syscall.Stat_t).Uid != 0 || info.Mode()&0o022 != 0 {
			return errRefused
		}
	}
	return exec.Command(a.path("pub/p/x")).Run()
}
