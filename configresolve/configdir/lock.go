// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/internal/durable"
)

// A write takes milliseconds. Whoever may read the directory can hold its lock for
// ever, so waiting is bounded.
const (
	lockWait    = 20 * time.Millisecond // between two attempts
	lockTimeout = 10 * time.Second
)

// lock keeps other writers of d out until d is closed. The lock ends with the
// process, and leaves no file.
func lock(ctx context.Context, d *durable.Dir) error {
	deadline := time.Now().Add(lockTimeout)
	for {
		locked, err := d.TryLock()
		if err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		if locked {
			return nil
		}
		if !time.Now().Before(deadline) {
			return fmt.Errorf("wait for another writer: somebody has held a lock on %s for %s (lslocks or fuser tell who)", d.Path(), lockTimeout)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for another writer: %w", ctx.Err())
		case <-time.After(lockWait):
		}
	}
}
