// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package hostns

import (
	"errors"
	"fmt"
	"runtime"
)

func checkProc(proc string) error {
	return fmt.Errorf("%s: %s has no proc file system: %w", proc, runtime.GOOS, errors.ErrUnsupported)
}

func checkPath(string, func(side, string) error) error { return nil }
