// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package neighbours has several agents share a node of the running kernel, each with a plan
// of its own, as an agent's author writes it.
package neighbours
