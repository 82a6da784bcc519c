// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/failure"
)

// A write takes milliseconds. Root, or this user, may still stop one.
const (
	lockWait    = 20 * time.Millisecond // between two attempts
	lockTimeout = 10 * time.Second
)

// lockName is the directory that exists while a writer is at work or, if that is
// killed, until the next one. No other user can hold the lock, and readers skip its
// name.
const lockName = "..lock"

// lock keeps other writers of d out until unlock is called.
func lock(ctx context.Context, d *durable.Dir) (unlock func() error, err error) {
	deadline := time.Now().Add(lockTimeout)
	for {
		unlock, err = d.TryLock(lockName)
		if err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
		if unlock != nil {
			return unlock, nil
		}
		if !time.Now().Before(deadline) {
			return nil, code.Errorf(code.LockHeld, "wait for another writer: it has held the lock %s for %s (lslocks or fuser tell which process)", d.Path(lockName), lockTimeout)
		}
		if err := failure.Sleep(ctx, lockWait); err != nil {
			return nil, fmt.Errorf("wait for another writer, which holds the lock %s: %w", d.Path(lockName), err)
		}
	}
}
