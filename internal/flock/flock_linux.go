// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package flock

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/waiting"
)

// maxVanished bounds how often in a row the file may be removed between two calls before
// Lock gives up.
const maxVanished = 1000

var errVanished = errors.New("another process keeps removing the lock file")

func (f File) lock(ctx context.Context) (func() error, error) {
	start := time.Now()
	timeout := cmp.Or(f.Timeout, defaultTimeout)
	held, waits := &HeldError{Path: f.Path}, waiting.Wait{}
	defer waits.End()
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
		case !errors.Is(err, ErrHeld):
			return nil, fmt.Errorf("lock %s: %w", f.Path, err)
		}
		vanished = 0
		held.Holder, held.Waited = holder, time.Since(start)
		wait := min(pollInterval, timeout-held.Waited)
		if wait <= 0 {
			return nil, held
		}
		waits.For(ctx, fmt.Sprintf("the lock %s, held by %v", f.Path, holder), timeout-held.Waited)
		if err := failure.Sleep(ctx, wait); err != nil {
			held.Waited, held.Err = time.Since(start), err
			return nil, held
		}
	}
}

// try takes the lock if it is free. If it is not, it returns ErrHeld and the
// holder.
func (f File) try() (*lock, Holder, error) {
	l, err := open(f.Path)
	if err != nil {
		return nil, Holder{}, err
	}
	switch err := l.flock(); {
	case errors.Is(err, ErrHeld):
		holder := l.holder()
		l.close()
		return nil, holder, ErrHeld
	case err != nil:
		l.close()
		return nil, Holder{}, err
	}
	return l, Holder{}, nil
}

// write records who holds the lock. The lock is held even without that, so errors
// are ignored.
func (l *lock) write(owner string) {
	hostname, _ := os.Hostname()
	text, err := json.Marshal(Holder{Hostname: hostname, Owner: owner, PID: os.Getpid(), Start: time.Now().UTC()})
	if err == nil && l.file.Truncate(0) == nil {
		_, _ = l.file.WriteAt(append(text, '\n'), 0)
	}
}

func (l *lock) holder() (h Holder) {
	content := make([]byte, 4096)
	n, err := l.file.ReadAt(content, 0)
	if err != nil && !errors.Is(err, io.EOF) || json.Unmarshal(content[:n], &h) != nil {
		return Holder{} // not written yet, or not ours
	}
	return h
}
