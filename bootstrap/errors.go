// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"errors"
	"fmt"
)

// ErrNotConverged says that an action was applied, or reverted, without an
// error, and its check still names changes. The error that wraps it names them.
var ErrNotConverged = errors.New("still not as it should be")

var (
	errNoRevert      = fmt.Errorf("the action cannot be reverted: %w", errors.ErrUnsupported)
	errNoCheckRevert = fmt.Errorf("the action cannot say beforehand what it would revert: %w", errors.ErrUnsupported)
)

// StepError is what went wrong in one step of a plan.
type StepError struct {
	// Step is the step's name.
	Step string

	// Op says what the plan was doing: "prepare" (see [Plan.Fail]), "start"
	// (the context was done before the step), "check", "apply", "verify" (the
	// check afterwards), "check-revert" or "revert".
	Op string

	// Err is the action's own error, the context's cause, or one that wraps
	// ErrNotConverged.
	Err error
}

// Error names the step, the operation and the error.
func (e *StepError) Error() string {
	return fmt.Sprintf("step %s: %s: %v", e.Step, e.Op, e.Err)
}

// Unwrap returns Err.
func (e *StepError) Unwrap() error { return e.Err }

// blockedBy is the reason why a step was not tried.
func blockedBy(step string) error {
	return fmt.Errorf("it comes after step %s, which failed", step)
}

// ended is why ctx is done: it matches ctx.Err, and names the cause too.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
