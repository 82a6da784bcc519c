// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"syscall"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/unsupported"
)

// ErrNotConverged means that an action was applied, or reverted, without an error,
// but its check still names changes. The error that wraps it lists them.
var ErrNotConverged = errors.New("still not as it should be")

// ErrUnrecorded means that an action changed something and did not record it in the
// plan's journal, although it declares that it does: the change cannot be undone. The
// causes are a wrapper that does not pass the context on, and an action that calls Begin
// for some of its changes only, such as those that make its object but not those that
// repair it.
var ErrUnrecorded error = code.New(code.PlanUnrecorded, "it was changed, and not recorded")

var (
	errNoRevert      = unsupported.Error("the action cannot be reverted")
	errNoCheckRevert = cannotSayError{unsupported.Error("the action cannot say beforehand what it would revert")}
)

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

	// Err is the action's own error, the context's cause, or an error that wraps
	// ErrNotConverged.
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

// nothingToRevert reports whether err says, by matching [errors.ErrUnsupported],
// that there is nothing to revert. The errnos for calls that a kernel or a file
// system lacks (ENOSYS, EOPNOTSUPP) match it too, but mean that a Revert failed. If
// errors are joined, every one of them has to say it.
func nothingToRevert(err error) bool {
	if err == nil {
		return false
	}
	if _, errno := err.(syscall.Errno); errno {
		return false
	}
	if is, ok := err.(interface{ Is(error) bool }); err == errors.ErrUnsupported || ok && is.Is(errors.ErrUnsupported) {
		return true
	}
	switch wrapper := err.(type) {
	case interface{ Unwrap() error }:
		return nothingToRevert(wrapper.Unwrap())
	case interface{ Unwrap() []error }:
		if reflect.TypeOf(err) == reflect.TypeOf(errors.Join(err, err)) {
			return !slices.ContainsFunc(wrapper.Unwrap(), func(err error) bool { return !nothingToRevert(err) })
		}
		return slices.ContainsFunc(wrapper.Unwrap(), nothingToRevert)
	}
	return false
}

// cannotSayError is what a wrapper's CheckRevert returns if the wrapped action can be
// reverted but is not a [CheckReverter].
type cannotSayError struct{ error }

func isCannotSay(err error) bool { return errors.As(err, new(cannotSayError)) }

func (e cannotSayError) Unwrap() error { return e.error }

// KeptError is an error of a revert that only means that something is kept, because it
// has been changed since. Of a step that is no longer wanted, it is
// advice.
type KeptError interface {
	error
	OnlyKept()
}

// isOnlyKept reports whether err says nothing else: with another error joined to it, it
// does.
func isOnlyKept(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if _, ok := err.(KeptError); ok {
			return true
		}
	}
	return false
}

// AdvisingError is what a [Journal] returns from a revert, or reports for an entry, when
// something stays on the node because it is still needed: advice in the report, not a
// failure. Unwrap returns the error of what failed besides, or nil.
type AdvisingError interface {
	error
	Advice() []string
	Unwrap() error
}

// adviceIn takes the advice out of an error of a journal's.
func adviceIn(err error) (advice []string, failure error) {
	var advising AdvisingError
	if !errors.As(err, &advising) {
		return nil, err
	}
	return advising.Advice(), advising.Unwrap()
}

// PlanEnder is an error that the other steps would meet too, such as a journal that
// cannot be written: the plan ends with it.
type PlanEnder interface {
	error
	EndsPlan()
}

// endsPlan reports whether err, of one step, says enough for those that remain.
func endsPlan(ctx context.Context, err error) bool {
	return errors.As(err, new(PlanEnder)) || ctx.Err() != nil && errors.Is(err, ctx.Err())
}
