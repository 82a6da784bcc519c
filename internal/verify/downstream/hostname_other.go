// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package main

import (
	"errors"
	"fmt"
)

func setHostname(name string) error {
	return fmt.Errorf("set the hostname to %s: %w", name, errors.ErrUnsupported)
}
