// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package testns puts a test into throw-away Linux namespaces, so that it can
// use the real kernel as root and leave nothing behind.
//
// [Enter] locks the test's goroutine to its OS thread and gives that thread
// namespaces of its own; the thread dies with the goroutine, and with it every
// mount and link that the test made. Goroutines that the test starts are
// outside, as are subtests: each t.Run has a goroutine of its own and calls
// Enter itself. Programs run by the test (os/exec) are inside.
//
// It needs root with CAP_SYS_ADMIN. Without, a test skips, and where
// SLIPWAY_TEST_REQUIRE_ROOT=1 it fails.
package testns

// Namespace is a set of kinds of namespaces.
type Namespace uint8

// The kinds of namespaces that Enter makes.
const (
	Mount  Namespace = 1 << iota // mounts are private; /proc/sys is read-only, but for net under Net
	Net                          // lo is up
	Cgroup                       // rooted at the cgroup that the test process is in
	UTS
	IPC
)
