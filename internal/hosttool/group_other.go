// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !unix

package hosttool

import "os/exec"

func killGroup(*exec.Cmd) {}
