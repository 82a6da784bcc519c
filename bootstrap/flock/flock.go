// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package flock keeps two runs on one node apart by an advisory lock on a file
// (flock(2)).
//
// A method value of [File] is what bootstrap.Plan.Lock wants:
//
//	plan.Lock = flock.File{Owner: podUID}.Lock
//
// The kernel gives the lock back when its holder dies, however it dies: there is
// no stale lock and nothing to clean up by hand. The lock belongs to the open
// file, not to the process: two Locks of one file within one process exclude
// each other too, and programs started meanwhile do not inherit it.
//
// # Needs
//
// Linux, and the right to write to the file's directory: CAP_DAC_OVERRIDE or
// the same owner. The file system must be a local one; over NFS flock(2) has
// other semantics. Where the file is the host's, Lock is called inside
// hostns.Do; the returned unlock may be called anywhere. On other systems Lock returns an error
// matching [errors.ErrUnsupported].
//
// # When not to use it
//
// Everybody who changes the guarded state has to take the lock: it hinders
// nobody else. It is no queue either: who waits is not served in order.
package flock

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// DefaultPath is one lock for the whole node, whatever directories a run uses.
const DefaultPath = "/run/slipway.lock"

const (
	defaultTimeout = 60 * time.Second
	pollInterval   = 50 * time.Millisecond
)

// File is a lock file.
type File struct {
	// Path of the file, absolute. It is made with mode 0600, and stays: who removes
	// it lets two runs at a node at once. Nobody else may be able to open it. Zero:
	// DefaultPath, for root; other users name one beside their journal.
	Path string

	// Timeout is how long Lock waits for another holder. Zero: 60 seconds.
	// Negative: not at all.
	Timeout time.Duration

	// Owner says on whose behalf the lock is held, for whoever waits for it;
	// for example a pod's UID. May be empty.
	Owner string
}

// Holder says who holds a lock, in its own words: what it wrote into the file.
type Holder struct {
	Hostname string    `json:"hostname"`        // as its UTS namespace has it; in a pod, the pod's name
	Owner    string    `json:"owner,omitempty"` // File.Owner
	PID      int       `json:"pid"`             // in its own pid namespace
	Start    time.Time `json:"start"`           // when it took the lock
}

// HeldError is the error of a Lock that another holder kept waiting for too
// long.
type HeldError struct {
	Path   string
	Waited time.Duration
	Holder Holder // zero if it did not say
	Err    error  // the context's error if that ended the wait; else nil
}

// Error returns one line that names the file and its holder.
func (e *HeldError) Error() string {
	text := fmt.Sprintf("lock %s: still held after %v by %v", e.Path, e.Waited.Round(time.Millisecond), e.Holder)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the context's error, if that ended the wait.
func (e *HeldError) Unwrap() error { return e.Err }

// String returns, for example,
// `pid 12 on "node-1" (owner "host", since 2026-01-02T15:04:05Z)`.
func (h Holder) String() string {
	if h == (Holder{}) {
		return "a process that does not say who it is"
	}
	owner := ""
	if h.Owner != "" {
		owner = fmt.Sprintf("owner %q, ", h.Owner)
	}
	return fmt.Sprintf("pid %d on %q (%ssince %s)", h.PID, h.Hostname, owner, h.Start.UTC().Format(time.RFC3339))
}

// Lock takes the lock, waiting for another holder until Timeout has passed or
// ctx ends; then it returns a [*HeldError] that names the holder.
//
// Unlock gives the lock back, and leaves the file. It is to be called once all
// work is done; called again, it does nothing. The lock file's content is only for other
// waiters to read: if it cannot be written (a full disk), the lock still holds.
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
