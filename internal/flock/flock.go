// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package flock prevents two runs on one node at the same time, with an advisory lock on
// a file (flock(2)). It is the lock of hostns.Host.
//
// The kernel releases the lock when its holder dies, however it dies: there are no
// stale locks, and nothing to clean up by hand. The lock belongs to the open file,
// not to the process: two Locks of one file within one process exclude each other
// too, and programs that are started while the lock is held do not inherit it.
//
// # Needs
//
// Linux, and the right to write to the file's directory: CAP_DAC_OVERRIDE or the
// same owner. The file system must be a local one; over NFS flock(2) has other
// semantics. If the file is the host's, call Lock inside hostns.Do; the returned
// unlock may be called anywhere. On systems other than Linux, nothing is locked.
//
// # When not to use it
//
// If other programs change the same state without taking the lock: it does not keep them
// out. If the order matters: waiters are not served in turn.
package flock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/slipway-dev/slipway/internal/code"
)

// DefaultPath is one lock for the whole node, whichever directories a run uses.
const DefaultPath = "/run/slipway.lock"

const (
	defaultTimeout = 60 * time.Second
	pollInterval   = 50 * time.Millisecond
)

// File is a lock file.
type File struct {
	// Path is the absolute path of the file. The file is made with mode 0600 and
	// never removed: removing it would allow two runs at once. No other user may have
	// permission to open it. If empty, it is DefaultPath, which suits root; for other
	// users choose a path next to their ledger.
	Path string

	// Timeout is how long Lock waits for another holder. Zero means 60 seconds; with a
	// negative value Lock does not wait.
	Timeout time.Duration

	// Owner identifies the holder to waiting processes, for example by a pod's UID. It
	// may be empty.
	Owner string
}

// ErrHeld is matched by a [*HeldError].
var ErrHeld = errors.New("held by another process")

// Holder identifies the holder of a lock, as it has written itself into the file.
type Holder struct {
	Hostname string    `json:"hostname"`        // of its UTS namespace; in a pod, the pod's name
	Owner    string    `json:"owner,omitempty"` // File.Owner
	PID      int       `json:"pid"`             // in its own pid namespace
	Start    time.Time `json:"start"`           // when it took the lock
}

// HeldError is the error of a Lock that waited too long for another holder.
type HeldError struct {
	Path   string
	Waited time.Duration
	Holder Holder // zero if the file does not say
	Err    error  // the context's error if it ended the wait; else nil
}

// Error returns one line that names the file and its holder.
func (e *HeldError) Error() string {
	text := fmt.Sprintf("lock %s: still held after %v by %v", e.Path, e.Waited.Round(time.Millisecond), e.Holder)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Is reports that the error is an ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Unwrap returns the context's error, if it ended the wait.
func (e *HeldError) Unwrap() error { return e.Err }

// Code returns "lock.held".
func (e *HeldError) Code() string { return code.LockHeld }

// String returns, for example,
// `pid 12 on "node-1" (owner "host", since 2026-01-02T15:04:05Z)`.
func (h Holder) String() string {
	if h == (Holder{}) {
		return "an unidentified process"
	}
	owner := ""
	if h.Owner != "" {
		owner = fmt.Sprintf("owner %q, ", h.Owner)
	}
	return fmt.Sprintf("pid %d on %q (%ssince %s)", h.PID, h.Hostname, owner, h.Start.UTC().Format(time.RFC3339))
}

// Lock takes the lock. If another process holds it, Lock waits until Timeout has passed
// or ctx ends, and then returns a [*HeldError] that names the holder.
//
// Unlock releases the lock, and does not remove the file. Call it once all work is
// done; a second call does nothing. The content of the lock file only informs waiting
// processes: if it cannot be written (a full disk), the lock is still held.
func (f File) Lock(ctx context.Context) (unlock func() error, err error) {
	f.Path = cmp.Or(f.Path, DefaultPath)
	if !filepath.IsAbs(f.Path) {
		return nil, fmt.Errorf("lock %q: not an absolute path", f.Path)
	}
	f.Path = filepath.Clean(f.Path)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("lock %s: %w", f.Path, err)
	}
	return f.lock(ctx)
}
