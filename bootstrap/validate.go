// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/code"
)

// validate returns an error if the plan is invalid: before it runs, and once it is prepared.
func (p *Plan) validate() error {
	places := make(map[string]int, len(p.Steps))
	var errs []error
	for i, s := range slices.Concat(p.Gates, p.Steps) {
		if _, twice := places[s.Name]; !twice {
			places[s.Name] = i - len(p.Gates)
		} else if s.Name != "" {
			errs = append(errs, fmt.Errorf("step %q is in the plan twice", s.Name))
		}
	}
	for i := range p.Gates {
		errs = append(errs, p.Gates[i].validate("gate", i, true))
	}
	for i := range p.Steps {
		errs = append(errs, p.Steps[i].validate("step", i, p.Prepare == nil), p.Steps[i].validateAfter(i, places))
	}
	return errors.Join(invalid(errors.Join(errs...)), p.validateAll())
}

// validateAll is validate, as far as undoing everything depends on it: not on the steps.
func (p *Plan) validateAll() error {
	if p.Ledger == nil {
		return nil
	}
	return invalid(p.Ledger.Validate())
}

func invalid(err error) error {
	if err == nil {
		return nil
	}
	return code.Errorf(code.PlanInvalid, "invalid plan: %w", err)
}

// validate says what is wrong with a step or a gate; that of a plan that is not complete may
// consist of nothing yet.
func (s *Step) validate(kind string, place int, isComplete bool) error {
	_, isWanter := s.Action.(ledger.Wanter)
	_, isUndoer := s.Action.(Undoer)
	_, undoes := s.Action.(interface{ Undo(context.Context) error })
	isGate := kind == "gate"
	switch {
	case s.Name == "":
		return fmt.Errorf("%s %d has no name", kind, place+1)
	case s.Timeout < 0:
		return fmt.Errorf("%s %q has a negative timeout: %s", kind, s.Name, s.Timeout)
	case isNil(s.does()):
		return fmt.Errorf("%s %q has a nil %T", kind, s.Name, s.does())
	case isGate && (s.Absent || len(s.After) > 0):
		return fmt.Errorf("gate %q can neither be absent nor after others", s.Name)
	case isGate && (s.Wants != nil || s.Prepare != nil || s.Action != nil):
		return fmt.Errorf("gate %q has Wants or an Action: make it one of Steps, or set Gate", s.Name)
	case isGate && s.Gate == nil && s.Skip == "":
		return fmt.Errorf("gate %q has no Gate", s.Name)
	case !isGate && s.Gate != nil:
		return fmt.Errorf("step %q is a gate: make it one of Gates", s.Name)
	case (s.Wants != nil || s.Prepare != nil) && s.Action != nil:
		return fmt.Errorf("step %q has both Wants and an Action, or a Prepare and an Action", s.Name)
	case s.does() == nil && s.Prepare == nil && isComplete && s.Skip == "" && !s.Absent:
		return fmt.Errorf("step %q has neither Wants nor an Action", s.Name)
	case isWanter:
		return fmt.Errorf("step %q has a %T as its Action, so that nothing would be recorded: set Wants", s.Name, s.Action)
	case undoes && !isUndoer:
		return fmt.Errorf("step %q has a %T as its Action, whose Undo would never be called: it needs a CheckUndo beside it", s.Name, s.Action)
	}
	return nil
}

func (s *Step) validateAfter(place int, places map[string]int) error {
	var errs []error
	for _, name := range s.After {
		switch other, known := places[name]; {
		case !known:
			errs = append(errs, fmt.Errorf("step %q is after %q, which is not in the plan", s.Name, name))
		case other >= place:
			errs = append(errs, fmt.Errorf("step %q is after %q, which does not come before it", s.Name, name))
		}
	}
	return errors.Join(errs...)
}

// isNil reports whether a pointer was given that is nil: its methods may not bear that.
func isNil(v any) bool {
	value := reflect.ValueOf(v)
	return value.Kind() == reflect.Pointer && value.IsNil()
}
