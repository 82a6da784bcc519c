// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command guest is pid 1 of a virtual machine of internal/verify/realkernels: it mounts
// the file systems that the kernel's command line requests, runs the parts named there,
// reports on the console how each ended, and ends the machine.
//
// Called as go, it stands in for the missing go command: it hands out programs that were
// built before. Called as refuse, it becomes another program, for which the mount calls
// since Linux 5.2 fail.
package main
