// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/failure"
)

// StepError is the failure of one step of a plan.
type StepError struct {
	// Step is the step's name.
	Step string

	// Op is what the plan was doing: "prepare" (see [Plan.Prepare] and [Step].Prepare), "start"
	// (the context was already done before the step), "check", "apply", "verify" (the check after
	// a change), "check-revert" or "revert"; or what the plan's Prepare was, in its own word, if
	// it has returned the error, such as "resolve".
	Op string

	// Err is the step's own error, the context's cause, or of an action that has changed
	// nothing by Apply, one that matches [ledger.ErrRefused].
	Err error
}

// Error returns one line that names the step, the operation and Err.
func (e *StepError) Error() string {
	return fmt.Sprintf("step %s: %s: %v", e.Step, e.Op, e.Err)
}

// Unwrap returns Err.
func (e *StepError) Unwrap() error { return e.Err }

// blockedBy is the reason why a step was not tried.
func blockedBy(step string) error {
	return fmt.Errorf("it comes after step %s, which failed", step)
}

// Certain returns err, of an action's or a gate's check, as one that no step of the plan could
// mend. It is a failure even after steps that would change something. Nil stays nil.
func Certain(err error) error { return failure.Certain(err) }

// isCertain reports whether no earlier step could mend err.
func isCertain(err error) bool {
	return errors.Is(err, failure.ErrCertain) || errors.Is(err, ledger.ErrConflict) || errors.Is(err, hostns.ErrNotHost)
}

// isAlone reports whether err, of one step, is no reason to keep the others from being applied:
// what it needs may come later, and until then they are kept as they should be.
func isAlone(err error) bool {
	var failed *StepError
	return errors.As(err, &failed) && failed.Op == opPrepare || errors.Is(err, ledger.ErrMissing) && !isCertain(err)
}

// endsPlan reports whether err, of one step, says enough for those that remain.
func endsPlan(ctx context.Context, err error) bool {
	return errors.Is(err, failure.ErrUnrecorded) || ctx.Err() != nil && errors.Is(err, ctx.Err())
}
