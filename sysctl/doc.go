// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package sysctl reads and sets kernel values, and keeps them in a sysctl.d
// file.
package sysctl
