// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package main

import "errors"

func (campaign) run() error { return errors.ErrUnsupported }
