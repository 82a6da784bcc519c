// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !race

package cniinstall_test

const raceEnabled = false
