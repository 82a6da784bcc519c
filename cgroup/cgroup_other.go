// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package cgroup

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

func unsupported() error {
	return fmt.Errorf("cgroups on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func detect(string) (Layout, error) { return "", unsupported() }

func id(string) (uint64, error) { return 0, unsupported() }

func open(string) (*os.File, error) { return nil, unsupported() }
