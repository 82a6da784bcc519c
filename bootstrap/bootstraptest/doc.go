// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package bootstraptest helps to test actions, and programs that run plans of
// them.
//
// [Conform] tests that an action keeps the contract of [bootstrap.Action]:
// first on a fake or a temporary directory, then on the real kernel. [Script]
// is an action that does what a test tells it to, for tests of what is built
// on plans; it needs neither root nor Linux.
package bootstraptest
