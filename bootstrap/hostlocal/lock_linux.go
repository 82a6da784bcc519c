// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostlocal

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/waiting"
)

// The lock is a flock on the file "lock", as host-local takes it. host-local holds it for
// milliseconds, for one address; any other process that can read the directory could hold
// it for ever.
const (
	lockName  = "lock"
	lockWait  = 10 * time.Second
	lockEvery = 20 * time.Millisecond
)

// lock takes host-local's lock, so that host-local neither reserves nor releases.
func lock(ctx context.Context, dir *durable.Dir) (unlock func(), err error) {
	f, err := dir.OpenOrCreate(lockName, 0o750) // host-local's mode
	if err != nil {
		return nil, err
	}
	if err := take(ctx, f, dir.Path(lockName)); err != nil {
		_ = f.Close() // it was not locked
		return nil, fmt.Errorf("lock %s: %w", dir.Path(lockName), err)
	}
	return func() { _ = f.Close() }, nil // which releases it
}

func take(ctx context.Context, f *os.File, path string) error {
	start, waits := time.Now(), waiting.Wait{}
	defer waits.End()
	for {
		isLocked, err := durable.TryFlock(f)
		switch {
		case err != nil || isLocked:
			return err
		case time.Since(start) >= lockWait:
			return code.Errorf(code.LockHeld, "another process still holds it after %v (find it with fuser or lslocks)", lockWait)
		}
		waits.For(ctx, "host-local's lock "+path, lockWait-time.Since(start))
		if err := failure.Sleep(ctx, lockEvery); err != nil {
			return err
		}
	}
}
