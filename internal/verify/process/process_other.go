// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package process

import (
	"os/exec"
	"time"

	"github.com/slipway-dev/slipway/internal/unsupported"
)

func dieWithParent(*exec.Cmd) {}

// CPU returns the processor time that the process has used so far.
func (p *Process) CPU() (time.Duration, error) {
	return 0, unsupported.Error("processor time of a process")
}
