// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package main

import (
	"fmt"
	"os"

	"github.com/slipway-dev/slipway/internal/unsupported"
)

func main() {
	fmt.Fprintln(os.Stderr, "guest:", unsupported.Error("it needs Linux"))
	os.Exit(1)
}
