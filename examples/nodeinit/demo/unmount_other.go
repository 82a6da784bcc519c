// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package demo

import "errors"

func unmount(string) error { return errors.ErrUnsupported }
