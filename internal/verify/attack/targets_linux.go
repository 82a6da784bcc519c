// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import "slices"

// Pairs of names. The operation works in pub/p; the target of the link, and root's
// directory, hold the same names, or the objects to harm.
var (
	file   = []pair{{"x", "link"}}
	parent = []pair{{"p", "link"}}
	roots  = []pair{{"p", "roots"}}
)

func targets() []target {
	return slices.Concat(fileTargets(), recordTargets(), mountTargets(), leafTargets(), pluginTargets())
}

// fileBesideLink makes the file pub/x, and a link to a file of root's.
func fileBesideLink(content, victim string) func(*arena) {
	return func(a *arena) {
		a.file("pub/x", content, 0o644, nobody)
		a.link("pub/link", "../victim/"+victim)
	}
}

// besideLink makes the directory pub/p, and a link to one of root's. fill fills both.
func besideLink(fill func(a *arena, dir string)) func(*arena) {
	return func(a *arena) {
		a.dir("pub/p", 0o755, nobody)
		fill(a, "pub/p")
		fill(a, "victim")
		a.link("pub/link", "../victim")
	}
}

// besideRoots makes the directory pub/p, and pub/roots, which only root may enter.
func besideRoots(fill, fillRoots func(a *arena, dir string)) func(*arena) {
	return func(a *arena) {
		a.dir("pub/p", 0o755, nobody)
		fill(a, "pub/p")
		a.dir("pub/roots", 0o700, 0)
		fillRoots(a, "pub/roots")
	}
}

func empty(*arena, string) {}

// holding fills a directory with a file x of root's.
func holding(content string) func(*arena, string) {
	return func(a *arena, dir string) { a.file(dir+"/x", content, 0o644, 0) }
}

// holdingDir fills a directory with an empty directory x of root's.
func holdingDir(a *arena, dir string) { a.dir(dir+"/x", 0o755, 0) }
