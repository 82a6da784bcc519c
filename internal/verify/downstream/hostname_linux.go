// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import "syscall"

func setHostname(name string) error { return syscall.Sethostname([]byte(name)) }
