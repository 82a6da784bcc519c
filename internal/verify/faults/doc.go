// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package faults runs nodeinit's commands on a throw-away node whose kernel
// fails: a system call in turn returns an error, or the program is killed there.
// After each fault it asks what an administrator would ask: is the exit status true, is
// every file either old or new, does a clean run bring the node to the wanted state, and
// does uninstall restore the original state?
//
// strace injects the faults. It counts system calls by thread, and a goroutine has no
// fixed one. So nodeinit is compiled with one more file, which does its work on the main
// thread, and runs on one processor. A call that a run does not reach is not counted. If
// a fault is the nth call of two threads, both meet it.
//
// It needs Linux, root and strace.
package faults
