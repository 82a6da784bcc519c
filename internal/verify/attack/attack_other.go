// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package main

import (
	"regexp"

	"github.com/slipway-dev/slipway/internal/unsupported"
)

func isolate() error                           { return unsupported.Error("attack: it needs Linux") }
func exchange([]string) error                  { return isolate() }
func attack(string, int, *regexp.Regexp) error { return isolate() }
