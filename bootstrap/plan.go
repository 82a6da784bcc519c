// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/internal/code"
)

// Step is an Action with its name and its place in a Plan.
type Step struct {
	// Name is unique in the plan and not empty.
	Name string

	// Action is what the step does. It may be nil if Skip is set.
	Action Action

	// After names steps that this one needs. They must come earlier in the list,
	// which [Plan.Validate] checks. If one of them fails, this step is [Blocked],
	// and so are the steps that need this one. After never changes the order.
	After []string

	// Timeout bounds everything that one run does in this step; 0 means that only
	// the caller's context does. All it does is end the action's context: the plan
	// waits for the action to return, and a system call in progress is not
	// abandoned.
	Timeout time.Duration

	// Optional lets the plan go on if the step fails: steps that need it are
	// [Blocked], the report shows the failure, but Check and Apply return no error
	// for it. Revert treats its failure like any other.
	Optional bool

	// SkipVerify trusts Apply, and does not check the step again afterwards. It is
	// for an action that has itself verified its changes, or makes all of them by
	// system calls that cannot fail silently. Do not set it for something that
	// others also change. A Revert is verified all the same.
	SkipVerify bool

	// Skip leaves the step out. For the steps that name it in After it counts as
	// done, and they then need the steps that it names in its own After. If the plan
	// has a journal, Revert still undoes what is recorded there for the step.
	Skip bool

	// SkipReason says in one short line why Skip is set, such as "asked for" or
	// "nothing to do: no sources". It is the [Result.Reason] of the step. It may be
	// empty.
	SkipReason string

	// Absent says that the step is no longer wanted: Apply undoes what the plan's
	// journal has recorded for it, and what the action, if there is one, can revert.
	// Set it only on purpose: a missing configuration does not mean that the step is
	// unwanted. Absent steps run before all others, the last one first. A failure to
	// undo is an error, and stops only the steps that name this one in After; what is
	// kept, since it is no longer as it was left, is advice.
	Absent bool
}

// Journal is what a plan needs from a journal. *journal.Journal of package
// bootstrap/journal implements it.
type Journal interface {
	// Enter returns an error unless this process may do op on this node: "check",
	// "apply", "check-revert" or "revert". Until leave is called, it keeps out every
	// process that must not run at the same time. The steps get the context inside.
	Enter(ctx context.Context, op string) (inside context.Context, leave func() error, err error)

	// WithStep returns a context in which whatever actions record belongs to the
	// named step.
	WithStep(ctx context.Context, step string) context.Context

	// Revert undoes what is recorded for the context's step. CheckRevert says what
	// Revert would undo.
	Revert(ctx context.Context) error
	CheckRevert(ctx context.Context) (changes []string, err error)
}

// Plan is a list of steps in the order in which they run.
//
// Check, Apply, CheckRevert and Revert always return a report, even with an error.
// The error joins one [*StepError] for each failure that counts, and the errors of
// Validate and Lock. A plan may be run any number of times, but not by several
// goroutines at once.
type Plan struct {
	// Steps run in this order; Revert runs them backwards.
	Steps []Step

	// Prepare completes the steps with what has to be read first, such as a
	// configuration: it sets their actions, and which of them are skipped or absent.
	// Check and Apply call it before anything else, without the lock, on a copy of
	// the plan that is made for this one run. Until then actions may be nil. If it
	// returns a [*StepError], the step named there has failed; with any other error,
	// the first step has. All other steps are then [Blocked], and the node is not
	// touched. Revert does not call it: the journal knows what there is to undo. If
	// Prepare is nil, the steps are complete.
	Prepare func(ctx context.Context, p *Plan) error

	// Trace is told about the run while it goes on. It may be nil.
	Trace *Trace

	// Journal remembers what the steps change, and who owns the node: Apply claims
	// the node, and neither Apply nor Revert changes anything on a node that
	// somebody else owns. Revert undoes what each step has recorded in the journal.
	// Give the same journal to the steps' actions. If it is nil, each action reverts
	// only what it knows of itself.
	Journal Journal

	// Lock is called by Apply and Revert before their first step, and the unlock
	// that it returns after their last, so that two runs on one node do not overlap.
	// If it is nil, there is no lock. Check and CheckRevert never take it.
	Lock func(ctx context.Context) (unlock func() error, err error)

	// CheckFirst makes Apply check the node before it takes the lock. If no step
	// would change anything, Apply is done, and the results are those of the check.
	// It is for a plan that is applied at every start of a pod, or on a timer. If
	// the journal has a method Claims() (bool, error) and that says that an apply
	// would give the node a new owner, Apply runs in full.
	CheckFirst bool

	// KeepGoing makes Apply go on after a failure with the steps that do not need
	// the failed one, as Check does, so that one run shows all that is wrong. It is
	// for a plan whose steps name in After all that they need; without it, a step may
	// rely on its place in the list. Apply stops all the same if the journal cannot
	// be written (the error has a method ConcernsAllSteps).
	KeepGoing bool
}

// Step returns the step with the given name, for Prepare to complete, or nil if
// there is none.
func (p *Plan) Step(name string) *Step {
	i := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Steps[i]
}

// Validate says what is wrong with the plan itself: a step that has no name, or the
// name of another step; that has no action and no Prepare to give it one; that has
// a negative timeout; or whose After names a step that does not exist or comes
// later. The methods that run the plan call Validate first.
func (p *Plan) Validate() error {
	var errs []error
	places := make(map[string]int, len(p.Steps))
	for i, s := range p.Steps {
		if _, twice := places[s.Name]; !twice {
			places[s.Name] = i
		} else if s.Name != "" {
			errs = append(errs, fmt.Errorf("step %q is in the plan twice", s.Name))
		}
	}
	for i, s := range p.Steps {
		errs = append(errs, s.validate(i, places, p.Prepare == nil)...)
	}
	if err := errors.Join(errs...); err != nil {
		return code.Errorf(code.PlanInvalid, "invalid plan: %w", err)
	}
	return nil
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

// Check says what Apply would do, and changes nothing: each step is [WouldChange]
// or [Unchanged]. If the journal says that somebody else owns the node, Apply would
// refuse it, and Check looks at no step.
//
// Otherwise it looks at every step that it can. A step whose Check returns an error
// is [Failed], and the steps that need it are [Blocked]. But if that step itself
// needs one that would change, the error may only mean that this change has not
// been made yet: the step is then [Unknown], and Check returns no error for it.
func (p *Plan) Check(ctx context.Context) (*Report, error) {
	return p.run(ctx, pass{op: OpCheck, do: (*walk).check}, prepared((*Plan).entered))
}

// Apply brings the node to the state of each step in turn: it checks the action,
// applies it if anything would change, and checks it again, unless the step sets
// SkipVerify. The step is then [Changed] or [Unchanged]; if the second check still
// names changes, it is [Failed] with [ErrNotConverged].
//
// Apply stops at the first failure of a step that is not Optional, unless KeepGoing
// is set: the steps that need it are [Blocked], the other remaining steps are
// [NotRun]. It undoes nothing, and may be run again. When ctx is done, the remaining
// steps are NotRun and the error says so.
func (p *Plan) Apply(ctx context.Context) (*Report, error) {
	return p.run(ctx, pass{op: OpApply, do: (*walk).apply, stops: !p.KeepGoing}, prepared((*Plan).applied))
}

// CheckRevert says what Revert would undo, and changes nothing. The report starts
// with the last step. A step whose action cannot be reverted is [Skipped]. A step
// whose action can be reverted, but is not a [CheckReverter], is [Unknown].
func (p *Plan) CheckRevert(ctx context.Context) (*Report, error) {
	return p.run(ctx, pass{op: OpCheckRevert, do: (*walk).checkRevert, reverse: true}, (*Plan).entered)
}

// Revert undoes what Apply did, in this or another process, last step first. It
// undoes what the journal has recorded or, without a journal, what the actions
// themselves have. It goes on after a failure. The report starts with the last
// step.
//
// With a journal, what is recorded there for a step is undone first, and then
// whatever else the step's action, if there is one, can revert. Recorded steps that
// are not in the plan are left alone; the journal has its own method that undoes
// everything.
//
// A step is [Skipped], with the reason as its error, if its action is not a
// [Reverter], or says with an error matching [errors.ErrUnsupported] that it has
// nothing to revert. The Revert of a [CheckReverter] is called even if CheckRevert
// names nothing, since its records may need clearing; the step is then [Unchanged].
// If CheckRevert still names something afterwards, the step is [Failed] with
// [ErrNotConverged]. A step whose Reverter cannot say what it would undo is
// [Changed] once it has run.
func (p *Plan) Revert(ctx context.Context) (*Report, error) {
	return p.run(ctx, pass{op: OpRevert, do: (*walk).revert, reverse: true}, (*Plan).locked)
}
