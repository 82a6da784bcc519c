// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package failure joins errors, deduplicated and capped, marks those that are certain, and
// waits until a context ends.
package failure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/internal/code"
)

// ErrReplaced is matched if another object has taken the place of the one that was seen.
var ErrReplaced = code.New(code.CleanupReplaced, "another one has taken its place; left as it is")

// ErrUnrecorded is matched if the ledger cannot be written: no further step can be recorded.
var ErrUnrecorded = errors.New("the ledger cannot be written")

// Set joins errors that may be many and alike, such as those of thousands of links: it
// keeps each text once, and the first few texts. The zero value is empty.
type Set struct {
	seen map[string]bool
	errs []error
	more int
}

// Most is how many different errors are kept.
const Most = 100

// Add adds an error, unless it is nil.
func (s *Set) Add(err error) {
	if err == nil || s.seen[err.Error()] {
		return
	}
	if len(s.errs) == Most {
		s.more++
		return
	}
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	s.seen[err.Error()] = true
	s.errs = append(s.errs, err)
}

// Join returns nil for an empty set.
func (s *Set) Join() error {
	if s.more > 0 {
		return errors.Join(append(s.errs, fmt.Errorf("and %d more errors", s.more))...)
	}
	return errors.Join(s.errs...)
}

// ErrCertain is matched by what [Certain] returns.
var ErrCertain = errors.New("no step of the plan could mend it")

// Certain is bootstrap.Certain.
func Certain(err error) error {
	if err == nil {
		return nil
	}
	return certain{err}
}

type certain struct{ error }

// Unwrap lets whoever takes joined errors apart go on.
func (c certain) Unwrap() []error    { return []error{c.error} }
func (certain) Is(target error) bool { return target == ErrCertain }

// Sleep waits for d, or returns why ctx ended first.
func Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return Ended(ctx)
	}
	select {
	case <-ctx.Done():
		return Ended(ctx)
	case <-time.After(d):
		return nil
	}
}

// Ended is why ctx is done: it matches ctx.Err, and names the cause too.
func Ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
