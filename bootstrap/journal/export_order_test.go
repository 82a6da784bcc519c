// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

// Order is the order in which entries are undone.
var Order = order
