// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/internal/testns"
)

// refuseNewMountCalls leaves the calling thread only mount(2), as a container's seccomp
// profile may.
func refuseNewMountCalls() error { return testns.Refuse(unix.EPERM, testns.NewMountCalls()...) }

func mountTargets() []target {
	inPlace := func(a *arena) {
		a.dir("pub/x", 0o755, nobody)
		a.dir("victim/dir", 0o700, 0)
		a.link("pub/link", "../victim/dir")
	}
	inDir := besideLink(func(a *arena, dir string) { a.dir(dir+"/x", 0o755, 0) })
	bpf := func(name string) func(*arena) error {
		return func(a *arena) error { return bpffs.EnsureMounted(a.path(name)) }
	}
	var all []target
	for _, old := range []bool{false, true} {
		how := ""
		if old {
			how = ", by mount(2)"
		}
		all = append(all,
			target{name: "mount bpf, in its place" + how, pairs: file, setup: inPlace, try: bpf("pub/x"), old: old,
				naive: func(a *arena) error { return mountOn(a.path("pub/x")) }},
			target{name: "mount bpf, in a directory" + how, pairs: parent, setup: inDir, try: bpf("pub/p/x"), old: old,
				naive: naivelyBelow(mountOn)},
			target{name: "mount bpf, in a new directory" + how, pairs: parent, setup: besideLink(empty), try: bpf("pub/p/x"), old: old,
				naive: naivelyBelow(makeDir)},
			target{name: "mount cgroup2, in its place" + how, pairs: file, setup: inPlace, old: old,
				try:   func(a *arena) error { return cgroup.EnsureMounted(a.path("pub/x")) },
				naive: func(a *arena) error { return mountOn(a.path("pub/x")) }})
	}
	all = append(all, target{
		name: "undo a mount", pairs: parent, setup: mounted, try: undo, slow: true, naive: naivelyBelow(unmountOurs),
	})
	for i := range all {
		all[i].mount, all[i].slow = true, true
	}
	return all
}

// mounted mounts bpf on pub/p/x, as ours, and on victim/x, as another root process.
func mounted(a *arena) {
	besideLink(holdingDir)(a)
	a.undone(bpffs.Mount{Path: a.path("pub/p/x")})
	a.do(unix.Mount("root's", a.path("victim/x"), "tmpfs", 0, ""))
}
