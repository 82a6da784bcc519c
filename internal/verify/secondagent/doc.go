// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package secondagent tests that an agent other than the best known one gets all
// that it needs from the public packages, under its own names: its configuration,
// its paths, its drop-in, its plugin in another CNI's chain, and an action of its
// own.
package secondagent
