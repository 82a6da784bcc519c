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

import (
	"os"
	"testing"
)

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

// RequireEnv names the variable that, set to 1, turns every skip into a failure.
const RequireEnv = "SLIPWAY_TEST_REQUIRE_ROOT"

// Skip skips the test for reason, or fails it where skips are not allowed.
func Skip(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv(RequireEnv) == "1" {
		t.Fatalf("%s=1 allows no skip: %s", RequireEnv, reason)
	}
	t.Skip(reason)
}

// SkipKernel skips a test of a feature that the running kernel lacks, also where no
// other skip is allowed: another kernel has it, or another layout of cgroups.
func SkipKernel(t testing.TB, feature string) {
	t.Helper()
	t.Skip("this kernel has no " + feature)
}

// OwnKernelEnv is set in a virtual machine that is the tests' own.
const OwnKernelEnv = "SLIPWAY_TEST_OWN_KERNEL"

// OwnKernel skips a test that changes the kernel itself, such as its modules, where it
// is the machine's.
func OwnKernel(t testing.TB) {
	t.Helper()
	if os.Getenv(OwnKernelEnv) != "1" {
		t.Skip("it changes the kernel: make kernels-short runs it in a virtual machine")
	}
}

// SkipShort skips a test where only short ones are asked for.
func SkipShort(t testing.TB, takes string) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes " + takes + ": make verify runs it")
	}
}
