// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !unix

package realkube

import "syscall"

// Nothing can be stopped here: the process ends instead.
const (
	stopSignal     = syscall.SIGKILL
	continueSignal = syscall.SIGKILL
)
