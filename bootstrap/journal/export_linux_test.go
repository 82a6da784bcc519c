// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

// Trusted returns an error if another user could have written a file.
var Trusted = trusted
