// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"syscall"

	"github.com/slipway-dev/slipway/internal/code"
)

// Code returns the stable code of err, such as "sysctl.read-only": a name of the cause by
// which the failures of many nodes can be grouped. It is that of the first [StepError] in
// err's tree, else of the first error with a method Code() string, which an action's errors
// may have, or a general one, such as "plan.timeout" or "plan.failed". For nil it is empty.
//
// A code has the form PACKAGE.WHAT, of small letters, digits and single dashes, and at most
// 63 bytes; any other text does not count as a code. CODES.md lists those of this module.
func Code(err error) string {
	var step *StepError
	if errors.As(err, &step) {
		return Code(step.Err)
	}
	if own := code.Of(err); own != "" || err == nil {
		return own
	}
	return general(err)
}

// Meaning returns the cause that a code of this module stands for, and its remedy, each as
// in CODES.md. Both are empty for other codes.
func Meaning(text string) (cause, remedy string) {
	for _, m := range code.Table() {
		if m.Code == text {
			return m.Cause, m.Remedy
		}
	}
	return "", ""
}

// general is the code of an error that has none of its own.
func general(err error) string {
	for _, cause := range []struct {
		is   error
		code string
	}{
		{context.DeadlineExceeded, code.PlanTimeout},
		{context.Canceled, code.PlanCanceled},
		{fs.ErrPermission, code.PlanPermission},
		{syscall.EROFS, code.PlanReadOnly},
		{syscall.ENOSPC, code.PlanNoSpace},
		{syscall.EDQUOT, code.PlanNoSpace},
		{errors.ErrUnsupported, code.PlanUnsupported},
	} {
		if errors.Is(err, cause.is) {
			return cause.code
		}
	}
	return code.PlanFailed
}

// code is that of what the step failed by. It is empty for a step that did not fail: one that
// is blocked by another has no code of its own.
func (r Result) code() string {
	if r.Status != Failed && r.Status != NotRun {
		return ""
	}
	return Code(r.Err)
}

// Cause returns why a run has failed: Err, or otherwise the error of the first failed step that
// is not optional, and that step's name. For a run that has not failed, both are empty. The
// [Code] of err is the one by which a run can be grouped with those of other nodes.
func (r *Report) Cause() (step string, err error) {
	var in *StepError
	first := slices.IndexFunc(r.Results, func(result Result) bool { return result.code() != "" && !result.Excused })
	switch {
	case errors.As(r.Err, &in):
		return in.Step, r.Err
	case r.Err != nil:
		return "", r.Err
	case first >= 0:
		return r.Results[first].Step, r.Results[first].Err
	case r.Failed():
		return "", code.New(code.PlanFailed, "a step has failed")
	}
	return "", nil
}
