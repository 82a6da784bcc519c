// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package flock_test

import (
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/internal/flock"
)

func ExampleHeldError() {
	err := &flock.HeldError{
		Path:   "/run/slipway.lock",
		Waited: time.Minute,
		Holder: flock.Holder{Hostname: "node-1", Owner: "host", PID: 12, Start: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)},
	}
	fmt.Println(err)
	// Output: lock /run/slipway.lock: still held after 1m0s by pid 12 on "node-1" (owner "host", since 2026-01-02T15:04:05Z)
}
