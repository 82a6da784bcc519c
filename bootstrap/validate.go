// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/code"
)

// Validate reports errors in the plan itself: a step that has no name, or the
// name of another step; that has no action and no Prepare to give it one; that has
// a negative timeout; or whose After names a step that does not exist or comes
// later; an action that needs a Host where there is none, that waits longer than
// [MaxWaits], or that the journal could not undo although the step does not say that
// this is meant: see [Step].NoUndo. The methods that run the plan call Validate first,
// and again once it is prepared.
func (p *Plan) Validate() error {
	p = p.bridged()
	if err := p.validateNil(); err != nil {
		return code.Errorf(code.PlanInvalid, "invalid plan: %w", err)
	}
	var errs []error
	places := make(map[string]int, len(p.Steps))
	for i, s := range slices.Concat(p.Gates, p.Steps) {
		if _, twice := places[s.Name]; !twice {
			places[s.Name] = i - len(p.Gates)
		} else if s.Name != "" {
			errs = append(errs, fmt.Errorf("step %q is in the plan twice", s.Name))
		}
	}
	for i, s := range p.Gates {
		errs = append(errs, p.validateGate(i, s)...)
	}
	for i, s := range p.Steps {
		errs = append(errs, s.validate(i, places, p.Prepare == nil)...)
		switch {
		case s.Action == nil || s.Skip:
		case s.Absent:
			errs = append(errs, p.validateHost(s))
		default:
			errs = append(errs, p.validateAction(s))
		}
	}
	errs = append(errs, p.validateJournal())
	if err := errors.Join(errs...); err != nil {
		return code.Errorf(code.PlanInvalid, "invalid plan: %w", err)
	}
	return nil
}

// valid is Validate, or what of it undoing all depends on: not the steps.
func (p *Plan) valid(all bool) error {
	if !all {
		return p.Validate()
	}
	bare := Plan{Host: p.Host, Journal: p.Journal}
	return bare.Validate()
}

// validateNil returns an error if a pointer was given that is nil: its methods may not bear
// that.
func (p *Plan) validateNil() error {
	var errs []error
	for what, v := range map[string]any{"host": p.Host, "journal": p.Journal} {
		if isNil(v) {
			errs = append(errs, fmt.Errorf("the %s is a nil %T", what, v))
		}
	}
	for _, s := range slices.Concat(p.Gates, p.Steps) {
		if isNil(s.Action) {
			errs = append(errs, fmt.Errorf("the action of step %q is a nil %T", s.Name, s.Action))
		}
	}
	return errors.Join(errs...)
}

func isNil(v any) bool {
	value := reflect.ValueOf(v)
	return value.Kind() == reflect.Pointer && value.IsNil()
}

func (p *Plan) validateJournal() error {
	switch {
	case p.Journal == nil:
		return nil
	case p.Host == nil:
		return errors.New("it has a journal and no Host (hostns.Host{} is for a process that runs on the host)")
	}
	return p.Journal.Validate()
}

func (s *Step) validate(place int, places map[string]int, complete bool) (errs []error) {
	if s.Name == "" {
		errs = append(errs, fmt.Errorf("step %d has no name", place+1))
	}
	if s.Action == nil && !s.Skip && !s.Absent && complete {
		errs = append(errs, fmt.Errorf("step %q has no action", s.Name))
	}
	if s.Timeout < 0 {
		errs = append(errs, fmt.Errorf("step %q has a negative timeout: %s", s.Name, s.Timeout))
	}
	for _, name := range s.After {
		switch other, known := places[name]; {
		case !known:
			errs = append(errs, fmt.Errorf("step %q is after %q, which is not in the plan", s.Name, name))
		case other >= place:
			errs = append(errs, fmt.Errorf("step %q is after %q, which does not come before it", s.Name, name))
		}
	}
	return errs
}

func (p *Plan) validateGate(place int, s Step) (errs []error) {
	switch {
	case s.Name == "":
		errs = append(errs, fmt.Errorf("gate %d has no name", place+1))
	case s.Absent || len(s.After) > 0:
		errs = append(errs, fmt.Errorf("gate %q can neither be absent nor after others", s.Name))
	case s.Timeout < 0:
		errs = append(errs, fmt.Errorf("gate %q has a negative timeout: %s", s.Name, s.Timeout))
	}
	if s.Action == nil {
		if !s.Skip {
			errs = append(errs, fmt.Errorf("gate %q has no action", s.Name))
		}
		return errs
	}
	if r, ok := as[Recorder](s.Action); ok && len(r.Kinds()) > 0 && p.Journal != nil && !s.NoUndo {
		errs = append(errs, fmt.Errorf("gate %q could not be undone: what a gate does is not recorded (a %T records %s: make it one of Steps)", s.Name, s.Action, strings.Join(r.Kinds(), ", ")))
	}
	return append(errs, p.validateHost(s))
}

// waits returns how long all the Retries that a consists of may wait together, or, if
// that is more than MaxWaits, some of it that is.
func waits(a Action) (all time.Duration) {
	tries := time.Duration(1)
	for a != nil && all <= MaxWaits {
		r, retries := a.(retry)
		if g, ok := a.(Waiter); ok && !retries {
			return all + tries*max(0, min(g.Waits(), MaxWaits+1))
		}
		if retries {
			for _, wait := range r.waits {
				if all += tries * max(0, min(wait, MaxWaits+1)); all > MaxWaits {
					return max(all, wait)
				}
			}
			tries *= time.Duration(len(r.waits) + 1)
		}
		w, ok := a.(Wrapper)
		if !ok {
			break
		}
		a = w.Unwrap()
	}
	return all
}

// validateAction says what is wrong with a step's action in this plan.
func (p *Plan) validateAction(s Step) error {
	if long := waits(s.Action); long > MaxWaits {
		return fmt.Errorf("step %q waits for %s or longer, and holds the node's lock meanwhile: at most %s, or make it one of Gates", s.Name, long, MaxWaits)
	}
	if err := p.validateHost(s); err != nil {
		return err
	}
	if p.Journal == nil || p.Host == nil || s.NoUndo || !s.recorded(p.Host) {
		return nil
	}
	return s.validateKinds(p.Journal)
}

func (p *Plan) validateHost(s Step) error {
	if p.Host == nil && (len(s.namespaces()) > 0 || len(s.places()) > 0) {
		return fmt.Errorf("step %q acts on a host (%T), and the plan has none: set Host (hostns.Host{} is for a process that runs on it)", s.Name, s.Action)
	}
	return nil
}

// validateKinds returns an error if what the action records could not be undone.
func (s *Step) validateKinds(j Journal) error {
	r, records := as[Recorder](s.Action)
	_, reverts := innermost(s.Action).(Reverter)
	if !records && !reverts {
		return fmt.Errorf("step %q could not be undone: a %T says neither what it records (it is no Recorder) nor how it is reverted (implement Kinds, use Func(...).Recording, or set NoUndo if that is meant)", s.Name, s.Action)
	}
	if !records {
		return nil
	}
	for _, kind := range r.Kinds() {
		inside, ok := j.Handles(kind)
		if !ok {
			return fmt.Errorf("step %q could not be undone: the journal has no handler for what it records, %s (add the handler of its package, or set NoUndo)", s.Name, kind)
		}
		if s.Local { // it is recorded only where this side is the host
			continue
		}
		if len(inside) == 0 && len(s.namespaces()) > 0 {
			return fmt.Errorf("step %q could not be undone: the handler of %s acts where the process is, and the action in the host's namespaces %s", s.Name, kind, strings.Join(s.namespaces(), ", "))
		}
		for _, ns := range inside {
			if !slices.Contains(s.namespaces(), ns) {
				return fmt.Errorf("step %q could not be undone: the handler of %s acts in the host's namespace %s, and the action does not (return it from Namespaces, or use Func(...).In)", s.Name, kind, ns)
			}
		}
	}
	return nil
}

// namespaces are those of the host in which the step's action is called.
func (s *Step) namespaces() []string {
	if h, ok := as[Hosted](s.Action); ok && !s.Local {
		return h.Namespaces()
	}
	return nil
}

// places are where the step's action makes something on the host.
func (s *Step) places() map[string]string {
	if p, ok := as[Placed](s.Action); ok && !s.Local {
		return p.Places()
	}
	return nil
}

// recorded reports whether what the step changes is recorded: the host's objects, and
// those of this side where this is the host.
func (s *Step) recorded(h Host) bool {
	return !s.NoUndo && (h.IsHere() || len(s.namespaces()) > 0)
}
