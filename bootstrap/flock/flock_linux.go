// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package flock

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// maxVanished bounds how often in a row the file or its directory may vanish
// between two calls before Lock gives up: each time somebody else unlocked.
const maxVanished = 1000

var (
	errHeld     = errors.New("held by somebody else")
	errVanished = errors.New("the lock file or its directory vanished while it was being opened")
)

func (f File) lock(ctx context.Context) (func() error, error) {
	start := time.Now()
	timeout := cmp.Or(f.Timeout, defaultTimeout)
	held := &HeldError{Path: f.Path}
	for vanished := 0; ; {
		l, holder, err := f.try()
		switch {
		case err == nil:
			l.write(f.Owner)
			return sync.OnceValue(l.unlock), nil
		case errors.Is(err, errVanished):
			if vanished++; vanished < maxVanished {
				continue
			}
			return nil, fmt.Errorf("lock %s: %w", f.Path, err)
		case !errors.Is(err, errHeld):
			return nil, fmt.Errorf("lock %s: %w", f.Path, err)
		}
		vanished = 0
		held.Holder, held.Waited = holder, time.Since(start)
		wait := min(pollInterval, timeout-held.Waited)
		if wait <= 0 {
			return nil, held
		}
		if err := sleep(ctx, wait); err != nil {
			held.Waited, held.Err = time.Since(start), err
			return nil, held
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// try takes the lock if it is free. If it is not, it returns errHeld and the
// holder.
func (f File) try() (*lock, Holder, error) {
	l, err := open(f.Path)
	if err != nil {
		return nil, Holder{}, err
	}
	for {
		err = unix.Flock(l.file, unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		holder := l.holder()
		l.close()
		return nil, holder, errHeld
	case err != nil:
		l.close()
		return nil, Holder{}, fmt.Errorf("flock: %w", err)
	case !l.inPlace():
		// Its holder removed it after it was opened here: whoever comes now
		// makes a new file, which this lock does not guard.
		l.close()
		return nil, Holder{}, errVanished
	}
	return l, Holder{}, nil
}

// write notes who holds the lock. The lock holds without, so an error is of no
// consequence.
func (l *lock) write(owner string) {
	hostname, _ := os.Hostname()
	text, err := json.Marshal(Holder{Hostname: hostname, Owner: owner, PID: os.Getpid(), Start: time.Now().UTC()})
	if err == nil && unix.Ftruncate(l.file, 0) == nil {
		_, _ = unix.Pwrite(l.file, append(text, '\n'), 0)
	}
}

func (l *lock) holder() (h Holder) {
	content := make([]byte, 4096)
	n, err := unix.Pread(l.file, content, 0)
	if err != nil || json.Unmarshal(content[:n], &h) != nil {
		return Holder{} // not written yet, or nothing of ours
	}
	return h
}
