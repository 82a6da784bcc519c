// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package downstream tests that somebody else's agent, in a module outside of
// this tree, gets all that it needs from the public packages.
package downstream
