// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

// Delay is the wait of the retrying transport.
var Delay = delay
