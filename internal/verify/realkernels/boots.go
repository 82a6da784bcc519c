// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import "time"

// boot is one virtual machine: its kernel's parameters, and the programs that run there.
type boot struct {
	name     string
	cgroup   string // unified, hybrid or v1
	args     string // of the kernel
	parts    []string
	packages string // prefixes of the packages to test; if empty, all that were built
	skip     string // a regular expression of the tests to leave out
	limit    time.Duration
}

// The parts are scripts in guest/parts, except this one.
const tests = "tests"

var boots = []boot{
	{name: "unified", cgroup: "unified", parts: []string{"demo", "life", "container"}, limit: 10 * time.Minute},
	{name: "refused", cgroup: "unified", parts: []string{"hidepid", "mountcalls", "userns", "ptrace"}, limit: 10 * time.Minute},
	{name: "hybrid", cgroup: "hybrid", parts: []string{"demo", "container"}, limit: 10 * time.Minute},
	{name: "v1", cgroup: "v1", parts: []string{"demo", "container"}, limit: 10 * time.Minute},
	{name: "noipv6", cgroup: "unified", args: "ipv6.disable=1", parts: []string{"noipv6"}, limit: 10 * time.Minute},
	{name: "lockdown", cgroup: "unified", args: "lockdown=confidentiality", parts: []string{"lockdown"}, limit: 10 * time.Minute},
	{name: tests, cgroup: "unified", parts: []string{tests}, limit: 3 * time.Hour},
}

// shortBoots run at the same time. They test the packages whose calls differ by kernel
// (the others write files), except slow tests about cost or names.
var shortBoots = []boot{
	{name: "short", cgroup: "unified", parts: []string{"demo", "life", tests}, packages: "bootstrap/kmod,bpffs,cgroup,internal/fsmount,sysctl", skip: long, limit: time.Hour},
	{name: "short-cleanup", cgroup: "unified", parts: []string{tests}, packages: "cleanup", skip: long, limit: time.Hour},
}

const long = "BPF6_SameCost|CancelledSaysWhatIsLeft|CLN2_FilterNames|CLN9_Churn|CLN9_LinksInGroups|SEC9_NamesThatLook|SYS5_RealSystemdReadsGeneratedTrees"

var ofTheKernel = []string{"./bootstrap/kmod", "./bpffs/...", "./cgroup/...", "./cleanup/...", "./internal/fsmount/...", "./sysctl/..."}

func bootNames(boots []boot) (names []string) {
	for _, b := range boots {
		names = append(names, b.name)
	}
	return names
}

// rows are the rows of the table, in a user's words. A part is a script, the tests of all
// packages, or one package with one of its tests.
var rows = []struct{ title, boot, part string }{
	{"demo", "unified", "demo"},
	{"check, apply, apply, uninstall", "unified", "life"},
	{"the same from a container", "unified", "container"},
	{"hybrid cgroups: demo", "hybrid", "demo"},
	{"hybrid cgroups: life, also from a container", "hybrid", "container"},
	{"cgroup v1 only: demo", "v1", "demo"},
	{"cgroup v1 only: life, also from a container", "v1", "container"},
	{"without IPv6", "noipv6", "noipv6"},
	{"`lockdown=confidentiality`", "lockdown", "lockdown"},
	{"`/proc` with `hidepid=2`", "refused", "hidepid"},
	{"a profile that refuses the new mount calls", "refused", "mountcalls"},
	{"in a user namespace: refused, and undone", "refused", "userns"},
	{"without `CAP_SYS_PTRACE`: refused by name", "refused", "ptrace"},
	{"`cleanup` of programs on tcx", tests, "tests/cleanup TestCLN2_TCX"},
	{"`cleanup` of programs on netkit", tests, "tests/cleanup TestCLN2_Netkit"},
	{"`cleanup` of security hooks' programs on cgroups", tests, "tests/cleanup TestCLN2_CgroupSecurityHooks"},
	{"package tests", tests, tests},
}
