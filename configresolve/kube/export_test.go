// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

// Window is the time within which the retrying transport tries again.
var Window = window
