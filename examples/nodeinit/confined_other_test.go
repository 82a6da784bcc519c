// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package main_test

import "errors"

// confine is only for systems with containers.
func confine(string, []string) error { return errors.ErrUnsupported }
