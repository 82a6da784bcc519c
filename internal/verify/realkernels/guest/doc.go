// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command guest is pid 1 of a virtual machine of internal/verify/realkernels: it mounts what
// the kernel's command line asks for, runs the parts that are named there, says on the
// console how each ended, and ends the machine.
//
// Called as go, it stands in for the go command, which there is none of: it hands out
// programs that were built before. Called as refuse, it becomes another program that
// the mount calls since Linux 5.2 are refused to.
package main
