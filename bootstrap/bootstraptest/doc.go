// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package bootstraptest helps to test actions, and programs that run plans of
// them.
//
// [Conform] tests that an action keeps the contract of [bootstrap.Action]: first
// on a fake or a temporary directory, then on the real kernel. [Script] is an action that a
// test controls, for tests of code built on plans; it needs neither root nor Linux. [ConformKind]
// tests that a kind keeps the contract of [ledger.Kind].
//
// [Host] is for plans of a test's own. [Kernel] is a node's kernel in memory, for the unit test
// of a whole plan without root; [Node] is a throw-away node on the kernel that is running.
package bootstraptest
