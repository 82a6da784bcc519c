// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/code"
)

// Step is an Action with its name and its place in a Plan.
type Step struct {
	// Name is unique in the plan and not empty. The journal records what the step
	// changes under its name. A renamed step finds its objects as they should be, and
	// leaves them recorded under the former name: RevertAll undoes them, but so does an
	// Absent step of the former name, after which the renamed one makes them anew.
	Name string

	// Action is what the step does. It may be nil if Skip is set.
	Action Action

	// Wants is what the step wants, in place of an Action.
	Wants ledger.Wanter

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

	// NoUndo says that nothing that the step changes is to be undone: it is not
	// recorded. In a plan with a journal, an action that cannot be undone needs it.
	NoUndo bool

	// Local says that the action is meant for this side, where the process is, and not
	// for the host: no namespace is entered. What it changes is recorded only if the
	// process is on the host.
	Local bool

	// SkipVerify trusts Apply, and does not check the step again afterwards. It is
	// for an action that has itself verified its changes, or makes all of them by
	// system calls that cannot fail silently. Do not set it for something that
	// others also change. A Revert is verified all the same.
	SkipVerify bool

	// Skip leaves the step out. For the steps that name it in After it counts as
	// done, and they then need the steps that it names in its own After. If the plan
	// has a journal, Revert still undoes what is recorded there for the step.
	Skip bool

	// SkipReason is one short line that explains why Skip is set, such as "asked for" or
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

// Host is the node that a plan changes, and how the process reaches it. hostns.Host of
// package bootstrap/hostns implements it.
type Host interface {
	// Enter calls f in the host's namespaces with these names in /proc/PID/ns.
	Enter(ctx context.Context, namespaces []string, f func(context.Context) error) error

	// IsHere reports whether the process is on the host, so that nothing is entered.
	IsHere() bool

	// CheckPlaces returns an error if what is made at one of the places would stay in
	// the container that the process is in: see [Placed].
	CheckPlaces(places map[string]string) error

	// Lock takes the node's lock on behalf of owner, who may be empty. It calls waiting
	// if it has to wait, with what for and how long at most.
	Lock(ctx context.Context, owner string, waiting func(what string, atMost time.Duration)) (unlock func() error, err error)
}

// Journal remembers what a plan changes on its host, and for whom. *journal.Node of
// package bootstrap/journal implements it.
type Journal interface {
	// Validate reports errors in the journal's own fields.
	Validate() error

	// Handles reports whether it can undo entries of this kind, and in which
	// namespaces.
	Handles(kind string) (namespaces []string, ok bool)

	// Enter opens the journal on the host that enter enters, and returns an error
	// unless this process may do op there: "check", "apply", "check-revert" or
	// "revert". The methods below get a context that is made of the one inside.
	Enter(ctx context.Context, op string, enter func(ctx context.Context, namespaces []string, f func(context.Context) error) error) (inside context.Context, leave func() error, err error)

	// Identity returns whom it was entered for: an agent, an owner (empty: none is
	// configured), and the generation that this owner has claimed (0: none).
	Identity(inside context.Context) (agent, owner string, generation int)

	// Claims reports whether an apply that has nothing to change would still claim the
	// node. If not, it is done, and this process counts as one that has applied.
	Claims(inside context.Context) (bool, error)

	// Wishes reports whether checks have found what an apply would record although it
	// changes nothing: objects that are as wanted already.
	Wishes(inside context.Context) bool

	// WithStep returns a context in which whatever actions record belongs to the
	// named step. Noted reports whether they have recorded anything.
	WithStep(inside context.Context, step string) context.Context
	Noted(step context.Context) bool

	// Advice returns what an administrator should know about the step's objects: other
	// agents may want the same ones.
	Advice(step context.Context) []string

	// Revert undoes what is recorded for the context's step. CheckRevert returns what
	// Revert would undo. What other agents still need is in an [AdvisingError], as in
	// RevertAll.
	Revert(step context.Context) error
	CheckRevert(step context.Context) (changes []string, err error)

	// SaveReport keeps the report of a run that changed something, or failed, as JSON,
	// until the next one; not where nothing is recorded once it is reverted.
	SaveReport(inside context.Context, report []byte) error

	// RevertAll undoes everything that is recorded for all steps, or only lists it in a
	// dry run. It reports each change, or why it was not made; the error is about
	// anything else.
	RevertAll(inside context.Context, dryRun bool, report func(step, change string, err error)) error
}

// MaxWaits bounds what the waits of a [Retry] in a plan's step may take together.
const MaxWaits = 10 * time.Second

// Plan is a list of steps in the order in which they run.
//
// Check, Apply, CheckRevert, Revert and the methods that revert all always return a
// report, even with an error. The error joins one [*StepError] for each failure that
// counts, and the errors of the plan itself. A plan may be run any number of times, but
// not by several goroutines at once.
//
// A plan with a Host holds the node's lock while it changes something: in Apply after
// the gates, Prepare and the check, and in Revert and RevertAll. Check and the methods
// that check a revert take no lock. The package documentation says what excludes what.
type Plan struct {
	// Host is the node that is changed. Actions that name namespaces or places, and
	// plans with a Journal, need one: hostns.Host{} is for a process that runs on it.
	Host Host

	// Journal remembers what the steps change, and who owns the node: Apply claims
	// the node, and neither Apply nor Revert changes anything on a node that has
	// another owner, except that a process without an owner, such as an
	// administrator's, may apply on any node. Revert undoes what each step has recorded
	// in the journal, which actions get with their context. If it is nil, nothing is
	// recorded, and each action reverts only what it knows of itself.
	Journal Journal

	// Ledger records what steps with Wants change.
	Ledger *ledger.Ledger

	// Node is the node's name, Version that of the program, and Command the name of what
	// it was asked to do, for the report. They may be empty.
	Node, Version, Command string

	// Gates are waited for by Apply before anything else: before Prepare, and while
	// the node is neither locked nor claimed, so that others can go on. Nothing
	// that they do is recorded. Check says what would be waited for. One that was waited
	// for is [Changed] in the report, and an Apply that only waits counts as a change.
	Gates []Step

	// Steps run in this order; Revert runs them backwards.
	Steps []Step

	// Prepare completes the steps with what has to be read first, such as a
	// configuration: it sets their actions, and which of them are skipped or absent.
	// Check and Apply call it after the gates, without the lock, on a copy of
	// the plan that is made for this one run. Until then actions may be nil. If it
	// returns a [*StepError], the step named there has failed; with a [PlanEnder], no
	// step has run; with any other error, the first step has failed. All other steps are then [Blocked], and the node is not
	// touched. Revert does not call it: the journal knows what there is to undo. If
	// Prepare is nil, the steps are complete.
	Prepare func(ctx context.Context, p *Plan) error

	// Trace has hooks that are called during the run. It may be nil.
	Trace *Trace

	// KeepGoing makes Apply go on after a failure with the steps that do not need
	// the failed one, as Check does, so that one run does all that can be done, and shows
	// all that is wrong. It is for a plan whose steps name in After all that they need.
	// Apply stops all the same if the journal cannot be written (the error is a
	// [PlanEnder]).
	KeepGoing bool
}

// Step returns the step with the given name, for Prepare to complete, or nil if
// Steps has none. Gates are not found: they have been waited for by then.
func (p *Plan) Step(name string) *Step {
	i := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Steps[i]
}

// Check reports what Apply would do, and changes nothing: each step is [WouldChange]
// or [Unchanged]. If the journal says that the node has another owner, Apply would
// refuse it, and Check looks at no step.
//
// Otherwise it looks at every step that it can. A step whose Check returns an error
// is [Failed], and the steps that need it are [Blocked]. But if that step itself
// needs one that would change, the error may only mean that this change has not
// been made yet: the step is then [Unknown], and Check returns no error for it, unless
// that change could not help (see [Validator] and [MissingError]). While a gate is closed,
// a step whose Check fails is Unknown too.
func (p *Plan) Check(ctx context.Context) (*Report, error) {
	return p.run(ctx, OpCheck, false, (*walk).checkPlan)
}

// Apply brings the node to the state of each step in turn. First it waits for the
// gates, and checks all steps as [Plan.Check] does. If a step fails by that, or the
// journal refuses, nothing is changed; if nothing would change, nothing is locked, and
// the results are those of the check. Else it locks the node, and in each step checks
// the action, applies it if anything would change, and checks it again, unless the step
// sets SkipVerify. The step is then [Changed] or [Unchanged]; if the second check still
// names changes, it is [Failed] with [ErrNotConverged].
//
// Apply stops at the first failure of a step that is not Optional, unless KeepGoing
// is set: the steps that need it are [Blocked], the other remaining steps are
// [NotRun]. It undoes nothing, and may be run again. When ctx is done, the remaining
// steps are NotRun and the error says so.
func (p *Plan) Apply(ctx context.Context) (*Report, error) {
	return p.run(ctx, OpApply, false, (*walk).applyPlan)
}

// CheckRevert reports what Revert would undo, and changes nothing. The report starts
// with the last step. A step whose action cannot be reverted is [Skipped]. A step
// whose action can be reverted, but is not a [CheckReverter], is [Unknown].
func (p *Plan) CheckRevert(ctx context.Context) (*Report, error) {
	return p.run(ctx, OpCheckRevert, false, (*walk).revertPlan)
}

// Revert undoes what Apply did, in this or another process, last step first. It
// undoes what the journal has recorded or, without a journal, what the actions
// themselves have. It goes on after a failure. The report starts with the last
// step.
//
// With a journal, what is recorded there for a step is undone first, and then
// whatever else the step's action, if there is one, can revert. Recorded steps that
// are not in the plan are left alone: see [Plan.RevertAll].
//
// A step is [Skipped], with the reason as its error, if its action is not a
// [Reverter], or says with an error matching [errors.ErrUnsupported] that it has
// nothing to revert. The Revert of a [CheckReverter] is called even if CheckRevert
// names nothing, since its records may need clearing; the step is then [Unchanged].
// If CheckRevert still names something afterwards, the step is [Failed] with
// [ErrNotConverged]. A step whose Reverter cannot say what it would undo is
// [Changed] once it has run.
func (p *Plan) Revert(ctx context.Context) (*Report, error) {
	return p.run(ctx, OpRevert, false, (*walk).revertPlan)
}

// CheckRevertAll reports what RevertAll would undo, and changes nothing.
func (p *Plan) CheckRevertAll(ctx context.Context) (*Report, error) {
	return p.run(ctx, OpCheckRevert, true, (*walk).revertAll)
}

// RevertAll undoes everything that the journal has recorded, also for steps that are
// not in the plan: they are in the report after the plan's own, last step first. It is
// what uninstalls an agent, and needs none of the plan's steps.
func (p *Plan) RevertAll(ctx context.Context) (*Report, error) {
	return p.run(ctx, OpRevert, true, (*walk).revertAll)
}

// Inside calls f as an action of the named step is called: in these namespaces of the
// host, and with the journal to ask what is recorded for the step, but without the
// node's lock. Prepare may use it, and what goes on beside the plan, such as a guard.
func (p *Plan) Inside(ctx context.Context, step string, namespaces []string, f func(context.Context) error) (err error) {
	if f == nil {
		return fmt.Errorf("inside step %q: no function given to call", step)
	}
	if err := p.validateJournal(); err != nil {
		return code.Errorf(code.PlanInvalid, "invalid plan: %w", err)
	}
	if p.Journal == nil {
		return p.withBook(ctx, func(ctx context.Context) error { return p.enter(ctx, namespaces, f) })
	}
	inside, leave, err := p.Journal.Enter(ctx, string(OpCheck), p.enter)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	return p.enter(p.Journal.WithStep(inside, step), namespaces, f)
}

// enter calls f in namespaces of the host, if there is one.
func (p *Plan) enter(ctx context.Context, namespaces []string, f func(context.Context) error) error {
	if p.Host == nil || len(namespaces) == 0 {
		return f(ctx)
	}
	return p.Host.Enter(ctx, namespaces, f)
}
