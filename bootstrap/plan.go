// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// Step is one part of a Plan: what it wants of the node's objects, or an action or a gate.
type Step struct {
	// Name is unique in the plan and not empty. The ledger records what the step wants
	// under its name. A renamed step finds its objects as it wants them, and the claims of
	// the former name remain: Uninstall undoes them, and so does an Absent step of that name.
	Name string

	// Wants says which objects the step wants. They are changed, recorded and undone by the
	// plan's ledger, in the host's namespaces. If the plan has no ledger, they are changed,
	// and nothing is recorded.
	Wants ledger.Wanter

	// Prepare returns what the step wants, in the place of Wants, if that has to be read first,
	// such as a token. It is called on this side, never inside the host, by Check and Apply
	// after [Plan].Prepare, without the lock and before any step is applied. If it fails, this
	// step has failed, and the others go on that do not need it. It is not called for undoing:
	// where Wants is set too, it says of which kinds there may be records.
	Prepare func(ctx context.Context) (ledger.Wanter, error)

	// Action, in the place of both, is for what has no objects.
	Action Action

	// Gate, in the place of these, is for steps in [Plan].Gates, and only there.
	Gate Gate

	// After names steps that this one needs. They must come earlier in the list. If one of
	// them fails, this step is [Blocked], and so are the steps that need this one. After never
	// changes the order.
	After []string

	// Timeout bounds Prepare, what Check and Apply do in this step, and the Undo of an action; 0
	// means that only the caller's context does. All it does is end the context: the plan
	// waits for the step to return, and a system call in progress is not abandoned.
	Timeout time.Duration

	// Optional lets the plan go on if the step fails: steps that need it are
	// [Blocked], the report shows the failure, but Check and Apply return no error
	// for it. Revert treats its failure like any other.
	Optional bool

	// Local says that the step is meant for this side, where the process is, and not for
	// the host: no namespace is entered. In a container, what it wants is recorded as an
	// object of that container's.
	Local bool

	// Skip is why the step is left out, in one short line, such as "asked for" or "nothing to
	// do: no sources"; empty: it is not. It is the [Result.Reason] of the step. For the steps
	// that name it in After it counts as done, and they then need the steps that it names in
	// its own After. Revert still undoes what is recorded for it.
	Skip string

	// Absent says that the step is no longer wanted: Apply undoes what is recorded for
	// it, and calls the action's Undo, if there is one. Set it only on purpose: a missing
	// configuration does not mean that the step is unwanted. Absent steps come before all
	// others, the last one first. A failure to undo is an error, and stops only the steps
	// that name this one in After; what stays since others have changed it, or still need
	// it, is advice.
	Absent bool
}

// Plan is a list of steps in the order in which they run.
//
// Its methods always return a report, even with an error. The error joins one
// [*StepError] for each failure that counts, and the errors of the plan itself. If the plan is
// invalid, such as by a step that does nothing, or several things, nothing else is done. A plan
// may be run any number of times, but not by several goroutines at once.
type Plan struct {
	// Host is the node that is changed, and where its lock is. The zero value is for a
	// process that runs on the host: changes that would stay in a container are refused.
	Host hostns.Host

	// Ledger records what the steps want, and who owns the node. It is opened inside the
	// host. If it is nil, nothing is recorded, and nothing of what steps want can be undone.
	Ledger *ledger.Ledger

	// Node is the node's name, Version that of the program, and Command the name of what
	// it was asked to do, for the report. They may be empty.
	Node, Version, Command string

	// Gates are waited for by Apply before anything else. Check says what would be waited
	// for. One that was waited for is [Changed] in the report.
	Gates []Step

	// Steps run in this order; Revert goes backwards.
	Steps []Step

	// Prepare completes the steps with what has to be read first, such as a
	// configuration: it sets what they do, and which of them are skipped or absent.
	// Check and Apply call it after the gates, without the lock, on a copy of the plan that
	// is made for this one run. Until then steps may be empty. If it returns a
	// [*StepError], the step named there has failed, and all others are [Blocked]; any
	// other error is the plan's. The node is not touched then. For what only one step needs,
	// there is [Step].Prepare. Revert does not call it: the ledger knows what there is to undo.
	Prepare func(ctx context.Context, p *Plan) error

	// Diff, if it is set, has Check, CheckRevert and CheckUninstall say in [Result].Diff how the
	// contents of files would change. It compares two texts in the unified format, such as
	// udiff.Unified of github.com/aymanbagabas/go-udiff. Of each file, 64 KiB are read at most.
	Diff func(nameBefore, nameAfter, before, after string) string

	// Trace has hooks that are called during the run. It may be nil.
	Trace *Trace
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
// or [Unchanged]. If the node has another owner, so that Apply would refuse it, Check looks
// at no step.
//
// Otherwise it looks at every step that it can. One that cannot be looked at is [Failed],
// and the steps that need it are [Blocked]. But if it needs one that would change, or a gate
// is closed, the error may only mean that this has not happened yet: the step is then
// [Unknown], and Check returns no error for it. That is not so for an error of Wants, of a
// conflict with another agent, of a missing permission, or one that is [Certain]. An error of
// Wants that matches [ledger.ErrMissing] is as any other of the look.
func (p *Plan) Check(ctx context.Context) (*Report, error) {
	return p.run(ctx, opCheck, p.validate, (*walk).checkPlan)
}

// Apply brings the node to the state of each step in turn, once it has waited for the gates
// and checked all steps as [Plan.Check] does. If a step fails by that, or the node has
// another owner, nothing is changed. What a step Wants is changed and read back. An action
// is checked, applied if anything would change, and checked again. The step is then
// [Changed] or [Unchanged]; if something is still different, it is [Failed] with
// [ledger.ErrRefused].
//
// Apply stops at the first failure of a step that is not Optional: the steps that need it
// are [Blocked], the other remaining steps are [NotRun]. But where the step's Prepare has
// failed, or another program must bring something first ([ledger.ErrMissing]), the steps that
// do not need it go on, and are applied. Apply undoes nothing, and may be run again. When ctx
// is done, the remaining steps are NotRun and the error says so.
func (p *Plan) Apply(ctx context.Context) (*Report, error) {
	return p.run(ctx, opApply, p.validate, (*walk).applyPlan)
}

// CheckRevert reports what Revert would undo, and changes nothing.
func (p *Plan) CheckRevert(ctx context.Context) (*Report, error) {
	return p.run(ctx, opCheckRevert, p.validate, (*walk).revertPlan)
}

// Revert undoes what Apply did, in this or another process, and calls the Undo of actions
// that have one. Recorded steps that are not in the plan are left alone: see
// [Plan.Uninstall]. The report starts with the last step.
//
// What is recorded is undone together for all steps up to the next action that has an Undo,
// since whether an object may go can depend on others: newest first, and dependents before
// what they need. A step whose action has no Undo is [Skipped]. Revert goes on after a
// failure.
func (p *Plan) Revert(ctx context.Context) (*Report, error) {
	return p.run(ctx, opRevert, p.validate, (*walk).revertPlan)
}

// CheckUninstall reports what Uninstall would undo, and changes nothing.
func (p *Plan) CheckUninstall(ctx context.Context) (*Report, error) {
	return p.run(ctx, opCheckRevert, p.validateAll, (*walk).uninstall)
}

// Uninstall undoes everything that is recorded for the agent, also for steps that are
// not in the plan: they are in the report after the plan's own. The plan's steps need not be
// complete. While sandboxes need a part of it for their deletion, which fails with the code
// "cni.in-use", nothing is undone: their pods live on the rest. Revert, of named steps, goes on.
func (p *Plan) Uninstall(ctx context.Context) (*Report, error) {
	return p.run(ctx, opRevert, p.validateAll, (*walk).uninstall)
}

// withBook calls f with the ledger open, if there is one.
func (p *Plan) withBook(ctx context.Context, f func(context.Context, *ledger.Book) error) (err error) {
	if p.Ledger == nil {
		return f(ctx, nil)
	}
	var book *ledger.Book
	if err := p.Host.Do(ctx, []string{"mnt"}, func(ctx context.Context) (err error) {
		book, err = p.Ledger.Open(ctx)
		return err
	}); err != nil {
		return fmt.Errorf("open the ledger: %w", err)
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	return f(ledger.With(ctx, book), book)
}
