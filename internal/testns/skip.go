// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package testns

import (
	"flag"
	"os"
)

// TB is the part of [testing.TB] that this package needs. The package testing itself
// would be linked into the demonstration.
type TB interface {
	Helper()
	Cleanup(f func())
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Skip(args ...any)
	TempDir() string
}

// RequireEnv names the variable that, set to 1, turns every skip into a failure.
const RequireEnv = "SLIPWAY_TEST_REQUIRE_ROOT"

// Skip skips the test for reason, or fails it if skips are not allowed.
func Skip(t TB, reason string) {
	t.Helper()
	if os.Getenv(RequireEnv) == "1" {
		t.Fatalf("%s=1 allows no skip: %s", RequireEnv, reason)
	}
	t.Skip(reason)
}

// SkipKernel skips a test of a feature that the running kernel lacks, even if no other
// skip is allowed: another kernel has it, or another layout of cgroups.
func SkipKernel(t TB, feature string) {
	t.Helper()
	t.Skip("this kernel has no " + feature)
}

// OwnKernelEnv is set in a virtual machine that is the tests' own.
const OwnKernelEnv = "SLIPWAY_TEST_OWN_KERNEL"

// OwnKernel skips a test that changes the kernel itself, such as its modules, if that is
// the machine's.
func OwnKernel(t TB) {
	t.Helper()
	if os.Getenv(OwnKernelEnv) != "1" {
		t.Skip("it changes the kernel: make kernels-short runs it in a virtual machine")
	}
}

// SkipShort skips a test if only short ones are requested.
func SkipShort(t TB, takes string) {
	t.Helper()
	if f := flag.Lookup("test.short"); f != nil && f.Value.String() == "true" { // as testing.Short
		t.Skip("takes " + takes + ": make verify runs it")
	}
}
