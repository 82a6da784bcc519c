// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package process

import "os/exec"

func dieWithParent(*exec.Cmd) {}
