// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"crypto/rand"
	"os"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/flock"
)

const leftover = ".slipway-AAAAAAAAAAAAAAAA.tmp" // of a writer that was killed

func fileTargets() []target {
	nothing := besideLink(empty)
	return []target{{
		name: "make a link", pairs: parent, setup: nothing,
		try:   inDir("pub/p/x", func(d *durable.Dir, name string) error { return d.Symlink("target", name) }),
		naive: naivelyBelow(makeLink),
	}, {
		name: "mode of a directory, beside a link", pairs: file, try: inDir("pub/x", makeModeDir), naive: makeDirOfMode,
		setup: func(a *arena) { a.link("pub/link", "../victim") },
	}, {
		name: "mode of a directory, beside root's", pairs: []pair{{"x", "roots"}}, try: inDir("pub/x", makeModeDir), naive: makeDirOfMode,
		setup: func(a *arena) {
			a.dir("pub/roots", 0o700, 0)
			a.file("pub/roots/x", "root's", 0o644, 0)
		},
	}, {
		name: "mode of a directory, beside another user's", pairs: []pair{{"x", "roots"}}, try: inDir("pub/x", makeModeDir), naive: makeDirOfMode,
		setup: func(a *arena) { a.dir("pub/roots", 0o700, 4321) },
	}, {
		name: "remove a file", pairs: parent, setup: besideLink(holding("")),
		try:   inDir("pub/p/x", (*durable.Dir).Remove),
		naive: naivelyBelow(os.Remove),
	}, {
		name: "sweep a directory", pairs: parent,
		setup: besideLink(func(a *arena, dir string) { a.file(dir+"/"+leftover, "", 0o600, 0) }),
		try:   inDir("pub/p/x", func(d *durable.Dir, _ string) error { return d.Sweep() }),
		naive: naivelyBelow(func(path string) error { return os.Remove(strings.TrimSuffix(path, "x") + leftover) }),
	}, {
		name: "host path: directory", pairs: parent, setup: nothing, naive: naivelyBelow(makeDir),
		try: func(a *arena) error { return hostPath(a, "pub/p/x/y", "DirectoryOrCreate") },
	}, {
		name: "host path: file", pairs: parent, setup: nothing, naive: naivelyBelow(makeNew),
		try: func(a *arena) error { return hostPath(a, "pub/p/x", "FileOrCreate") },
	}, {
		name: "host path: content, in a directory", pairs: parent, setup: besideLink(holding("earlier")), naive: naivelyBelow(overwrite),
		try: func(a *arena) error { return content(a, "pub/p/x", false) },
	}, {
		name: "host path: content, in its place", pairs: file, setup: fileBesideLink("earlier", "secret"), naive: naively("pub/x", overwrite),
		try: func(a *arena) error { return content(a, "pub/x", false) },
	}, {
		name: "host path: a secret, recorded", pairs: file, setup: fileBesideLink("earlier", "secret"), naive: naively("pub/x", overwrite),
		try: func(a *arena) error { return content(a, "pub/x", true) },
	}, {
		name: "lock file, beside a link", pairs: file, try: takeLock, naive: naively("pub/x", lockFile),
		setup: func(a *arena) {
			a.file("pub/x", "", 0o600, 0)
			a.link("pub/link", "../victim/secret")
		},
	}, {
		name: "lock file, beside another name", pairs: file, try: takeLock, naive: naively("pub/x", lockFile),
		setup: func(a *arena) { // as one can make it where fs.protected_hardlinks is 0
			a.file("pub/x", "", 0o600, 0)
			a.do(os.Link(a.path("victim/secret"), a.path("pub/link")))
		},
	}}
}

// inDir tries f with the directory of a path and its last element.
func inDir(path string, f func(d *durable.Dir, name string) error) func(*arena) error {
	return func(a *arena) error { return durable.In(a.path(path), f) }
}

func makeModeDir(d *durable.Dir, name string) error {
	made, err := d.OpenNewDir(name, 0o755)
	if err != nil {
		return err
	}
	return made.Close()
}

func hostPath(a *arena, name string, typ string) error {
	return ledger.Apply(a.ctx, hostpath.Paths{{Path: a.path(name), Type: typ}})
}

// content writes a file, and another one at each try.
func content(a *arena, name string, secret bool) error {
	return a.recorded(hostpath.Content{Path: a.path(name), Bytes: []byte(rand.Text()), Mode: 0o644, Secret: secret})
}

func takeLock(a *arena) error {
	unlock, err := flock.File{Path: a.path("pub/x"), Timeout: -time.Second}.Lock(a.ctx)
	if err != nil {
		return err
	}
	return unlock()
}
