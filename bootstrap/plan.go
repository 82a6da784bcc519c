// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Step is an Action with its name and its place in a Plan.
type Step struct {
	// Name is unique in the plan and not empty.
	Name string

	// Action is what the step does. It may be nil if Skip is set.
	Action Action

	// After names steps that this one needs. They stand earlier in the list,
	// which [Plan.Validate] checks. If one of them failed, this step and those
	// after it are [Blocked]. After never changes the order.
	After []string

	// Timeout bounds all that one run does with the step; 0 means no bound but
	// the caller's context. It ends the action's context and no more: the plan
	// waits for the action to return, and a system call in progress is not
	// abandoned.
	Timeout time.Duration

	// Optional says that the plan goes on if the step fails: what needs it is
	// [Blocked], the report shows the failure, and Check and Apply return no
	// error for it. Revert reports it as any other.
	Optional bool

	// SkipVerify takes Apply at its word, and does not check the step again
	// after it: for an action that has itself looked at what it did, or whose
	// every change is a system call that cannot fail in silence. A step that
	// others go on changing is better checked. A Revert is checked all the same.
	SkipVerify bool

	// Skip leaves the step out. It counts as done for the steps that name it
	// in After; what it names in After itself still holds for them. Where the
	// plan has a journal, Revert undoes what it holds for the step all the same.
	Skip bool

	// Absent says that the step is no longer wanted: Apply undoes what the
	// plan's journal holds for it, and what the action, if there is one, can
	// revert. It is the program's word, to be given on purpose: a configuration
	// that is missing says nothing. Such steps come before all others, last first.
	// What cannot be undone is an error, and stops only those that name the step
	// in After.
	Absent bool
}

// Journal is what a plan needs of a journal; *journal.Journal of package
// bootstrap/journal is one.
type Journal interface {
	// Enter says whether this process may do what op says, one of the plan's
	// operations "check", "apply", "check-revert" and "revert", on this node, and
	// keeps out who must not do so meanwhile, until leave is called. The steps
	// get the context inside.
	Enter(ctx context.Context, op string) (inside context.Context, leave func() error, err error)

	// WithStep returns a context in which what actions record is the named
	// step's.
	WithStep(ctx context.Context, step string) context.Context

	// Revert undoes what is recorded for the context's step, and CheckRevert
	// says what that would be.
	Revert(ctx context.Context) error
	CheckRevert(ctx context.Context) (changes []string, err error)
}

// Plan is a list of steps in the order in which they run.
//
// Its methods return a report for every outcome, also beside an error. The
// error joins one [*StepError] for each failure that counts, and the errors of
// Validate and Lock. A plan may be run any number of times, but not by
// several goroutines at once.
type Plan struct {
	// Steps run in this order; Revert runs them backwards.
	Steps []Step

	// Prepare completes the steps with what has to be read first, such as a
	// configuration: their actions, and which are to be skipped or absent. Check
	// and Apply call it before all else, without the lock, with a copy of the plan
	// for this one run. Until then actions may be nil. Its error is that of the
	// step that a [*StepError] in it names, else of the first one; all others are
	// [Blocked], and the node is not touched. A revert does not call it: what there
	// is to undo, the journal knows. Nil: the steps are complete.
	Prepare func(ctx context.Context, p *Plan) error

	// Trace is told of the run as it goes. Nil: nobody is.
	Trace *Trace

	// Journal remembers what the steps change, and whose the node is: Apply
	// claims it, and both Apply and Revert change nothing on a node that is
	// somebody else's. What each step has recorded there is undone by Revert.
	// The steps' actions have to be given it too. Nil: each action reverts what it
	// knows of.
	Journal Journal

	// Lock is taken by Apply and Revert before their first step, and given
	// back by unlock after their last. It keeps two runs on one node apart.
	// Nil: no lock. Check and CheckRevert take none.
	Lock func(ctx context.Context) (unlock func() error, err error)
}

// Step returns the step with the name, for a Prepare to complete; nil: there is
// none.
func (p *Plan) Step(name string) *Step {
	i := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Steps[i]
}

// Validate says what is wrong with the plan itself: a step without a name or
// with another's, without an action unless there is a Prepare to give it one,
// with a negative timeout, or after one that is unknown or comes later. The
// other methods call it first.
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
		return fmt.Errorf("invalid plan: %w", err)
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

// Check says what Apply would do, and changes nothing: each step is
// [WouldChange] or [Unchanged]. On a node that Apply would refuse, since the
// journal says that it is somebody else's, no step is looked at.
//
// It looks at every step that can be looked at. A step whose Check errs is
// [Failed] and what comes after it is Blocked; but where it comes after a step
// that would change, it may err only because that has not happened yet, so it
// is [Unknown] and no error.
func (p *Plan) Check(ctx context.Context) (*Report, error) {
	return p.run(ctx, pass{op: OpCheck, do: (*walk).check}, prepared((*Plan).entered))
}

// Apply brings the node to the state of each step in turn: it asks the action
// what would change, applies it if anything would, and asks again, unless the
// step says SkipVerify. A step is then [Changed] or [Unchanged]; if the second
// answer is not empty, it is [Failed] with [ErrNotConverged].
//
// Apply stops at the first failure of a step that is not Optional: what comes
// after it is [Blocked], other steps are [NotRun]. It undoes nothing; it may be
// run again. When ctx is done, the remaining steps are NotRun and the error
// says so.
func (p *Plan) Apply(ctx context.Context) (*Report, error) {
	return p.run(ctx, pass{op: OpApply, do: (*walk).apply, stops: true}, prepared((*Plan).locked))
}

// CheckRevert says what Revert would undo, and changes nothing. The report
// starts with the last step. A step whose action cannot be reverted is
// [Skipped]; one whose action can, but is no [CheckReverter], is [Unknown].
func (p *Plan) CheckRevert(ctx context.Context) (*Report, error) {
	return p.run(ctx, pass{op: OpCheckRevert, do: (*walk).checkRevert, reverse: true}, (*Plan).entered)
}

// Revert undoes what Apply did, last step first, also what another process
// applied: what there is to undo, the journal says or, without one, what the
// actions themselves have recorded. It goes on after a failure. The report
// starts with the last step.
//
// With a journal, what that holds for a step is undone first, and then what the
// action, if there is one, names beyond it. Steps that the plan has not are not
// looked at; undoing everything is the journal's own.
//
// A step is [Skipped], with the reason as its error, if its action is not a
// [Reverter] or says with an error matching [errors.ErrUnsupported] that it
// has nothing to revert. The Revert of a [CheckReverter] is called even if
// CheckRevert names nothing, since what it recorded may need clearing; the
// step is then [Unchanged]. If CheckRevert still names something afterwards,
// the step is [Failed] with [ErrNotConverged]. A Reverter that cannot say what
// it would undo is [Changed] when it has run.
func (p *Plan) Revert(ctx context.Context) (*Report, error) {
	return p.run(ctx, pass{op: OpRevert, do: (*walk).revert, reverse: true}, (*Plan).locked)
}
