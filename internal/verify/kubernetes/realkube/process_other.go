// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package realkube

import (
	"errors"
	"fmt"
	"os/exec"
	"time"
)

func dieWithParent(*exec.Cmd) {}

func (p *process) cpu() (time.Duration, error) {
	return 0, fmt.Errorf("processor time of a process: %w", errors.ErrUnsupported)
}
