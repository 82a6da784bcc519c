// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package input

import "syscall"

// nonBlock lets an open of a FIFO return, whether it has a writer or not.
const nonBlock = syscall.O_NONBLOCK

// onlyDir lets nothing but a directory be opened.
const onlyDir = syscall.O_DIRECTORY
