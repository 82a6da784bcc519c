// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package input

import "syscall"

// nonBlock makes an open of a FIFO return, whether it has a writer or not.
const nonBlock = syscall.O_NONBLOCK

// onlyDir makes an open fail for anything but a directory.
const onlyDir = syscall.O_DIRECTORY
