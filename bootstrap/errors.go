// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// ErrNotConverged means that something was changed without an error, and is still
// different. The error that wraps it lists what.
var ErrNotConverged = errors.New("still not as it should be")

// StepError is the failure of one step of a plan.
type StepError struct {
	// Step is the step's name.
	Step string

	// Op is what the plan was doing: "prepare" (see [Plan.Prepare]), "start" (the
	// context was already done before the step), "check", "apply", "verify" (the
	// check after a change), "check-revert" or "revert"; or what Prepare was, in its own
	// word, if it has returned the error, such as "resolve".
	Op string

	// Code is the stable code of the failure, as [Code] finds it in Err. The plan
	// fills it.
	Code string

	// Err is the step's own error, the context's cause, or an error that wraps
	// ErrNotConverged.
	Err error
}

// Error returns one line that names the step, the operation and Err.
func (e *StepError) Error() string {
	return fmt.Sprintf("step %s: %s: %v", e.Step, e.Op, e.Err)
}

// Unwrap returns Err.
func (e *StepError) Unwrap() error { return e.Err }

// newStepError returns a StepError with the code of err.
func newStepError(step, op string, err error) *StepError {
	if errors.Is(err, ledger.ErrRefused) {
		err = notConverged{err}
	}
	return &StepError{Step: step, Op: op, Code: Code(err), Err: err}
}

// notConverged is the ledger's error for what is still different.
type notConverged struct{ error }

func (n notConverged) Unwrap() []error { return []error{n.error, ErrNotConverged} }

// blockedBy is the reason why a step was not tried.
func blockedBy(step string) error {
	return fmt.Errorf("it comes after step %s, which failed", step)
}

// CertainError is an error of an action's or a gate's check that no step of the plan could
// mend. It is a failure even after steps that would change something.
type CertainError interface {
	error

	// Certain does nothing; it only marks the error.
	Certain()
}

// isCertain reports whether no earlier step could mend err.
func isCertain(err error) bool {
	var certain CertainError
	return errors.As(err, &certain) || errors.Is(err, ledger.ErrConflict) || errors.Is(err, hostns.ErrNotHost)
}

// endsPlan reports whether err, of one step, says enough for those that remain.
func endsPlan(ctx context.Context, err error) bool {
	return errors.Is(err, ledger.ErrUnrecorded) || ctx.Err() != nil && errors.Is(err, ctx.Err())
}
