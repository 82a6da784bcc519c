// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/textdiff"
)

// do is what a walk does with one step, where its objects are. It leaves Step and Elapsed of
// the result to the walk.
type do func(w *walk, ctx context.Context, s *Step) Result

// check is what Plan.Check does with one step.
func (w *walk) check(ctx context.Context, s *Step) Result {
	if s.Wants != nil {
		return w.checkWants(ctx, s)
	}
	changes, err := s.checkItself(ctx)
	if err != nil {
		return s.failed("check", changes, err)
	}
	return foreseen(changes)
}

// checkItself calls the Check of an action or a gate.
func (s *Step) checkItself(ctx context.Context) ([]string, error) {
	if s.Gate != nil {
		return s.Gate.Check(ctx)
	}
	return s.Action.Check(ctx)
}

// checkWants looks at the objects that the step wants.
func (w *walk) checkWants(ctx context.Context, s *Step) Result {
	wants, err := w.wants(ctx, s)
	if err != nil {
		return s.failed("check", nil, err).in(wants, s)
	}
	var differences strings.Builder
	ctx = w.differing(ctx, func(_, difference string) { differences.WriteString(difference) })
	look, err := ledger.From(ctx).Check(ctx, s.Name, wants)
	if w.isBefore || os.Geteuid() == 0 { // other users may look
		err = errors.Join(err, Certain(look.Denied))
	}
	if err != nil {
		r := s.failed("check", look.Changes, err).in(wants, s)
		r.Diff = differences.String()
		return r
	}
	w.claims = w.claims || look.Claims
	r := foreseen(look.Changes).in(wants, s)
	r.Advice, r.Diff = look.Advice, differences.String()
	return r
}

// differing returns a context in which a dry run calls add with how contents would change.
func (w *walk) differing(ctx context.Context, add func(object, difference string)) context.Context {
	if w.isBefore || w.op != opCheck && w.op != opCheckRevert {
		return ctx
	}
	return textdiff.With(ctx, w.plan.Diff, add)
}

// in returns r with where the step's objects are, unless they are on this side.
func (r Result) in(wants ledger.Wants, s *Step) Result {
	if s.Local {
		return r
	}
	r.Places = places(wants)
	for _, path := range wants.Watch {
		r.Places[path] = ""
	}
	return r
}

// places returns where on the host the objects are, with the type of the file system if it is
// known.
func places(wants ledger.Wants) map[string]string {
	places := map[string]string{}
	for _, want := range wants.List {
		path, fstype := want.Object, ""
		if place := want.Kind.Place; place != nil {
			path, fstype = place(want.Object)
		} else if want.Kind.Space != ledger.File().Space { // that of paths
			path = ""
		}
		if path != "" {
			places[path] = fstype
		}
	}
	return places
}

// wants asks the step, and returns an error if it fails, or an object would be one of the
// container that the process is in. That is certain, unless another program can mend it.
func (w *walk) wants(ctx context.Context, s *Step) (ledger.Wants, error) {
	wants, err := s.Wants.Wants(ctx)
	for _, kind := range wants.Kinds {
		w.kinds[kind.Name] = kind
	}
	for _, want := range wants.List {
		w.kinds[want.Kind.Name] = want.Kind
	}
	if err == nil && !s.Local {
		err = w.plan.Host.CheckPlaces(places(wants))
	}
	if errors.Is(err, ledger.ErrMissing) {
		return wants, err
	}
	return wants, Certain(err)
}

// onItsSide does s where its objects are.
func (w *walk) onItsSide(ctx context.Context, s *Step, do do) (r Result) {
	err := w.enter(ctx, s, func(ctx context.Context) error {
		r = do(w, ctx, s)
		return nil
	})
	if err != nil {
		return s.failed(w.op, nil, err)
	}
	return r
}

// advised returns r with the advice of what the step consists of.
func (s *Step) advised(ctx context.Context, r Result) Result {
	adviser, ok := s.does().(Adviser)
	if !ok || r.Status == Failed {
		return r
	}
	advice, err := adviser.Advise(ctx)
	if err != nil {
		advice = append(advice, "there may be more to say: "+err.Error())
	}
	r.Advice = append(r.Advice, advice...)
	return r
}

// apply is what Plan.Apply does with one step.
func (w *walk) apply(ctx context.Context, s *Step) Result {
	if s.Wants != nil {
		return w.applyWants(ctx, s)
	}
	return s.act(ctx)
}

// applyWants has the ledger change the objects.
func (w *walk) applyWants(ctx context.Context, s *Step) Result {
	wants, err := w.wants(ctx, s)
	if err != nil {
		return s.failed("apply", nil, err).in(wants, s)
	}
	done, err := ledger.From(ctx).Apply(ctx, s.Name, wants)
	r := Result{Status: Unchanged, Changes: done.Changes, Adopted: done.Adopted, Advice: done.Advice}
	if err = r.addUndone(done.Undone, err, true); err != nil {
		r.Status, r.Err = Failed, &StepError{s.Name, "apply", err}
	} else if len(r.Changes) > 0 {
		r.Status = Changed
	}
	return r.in(wants, s)
}

// act applies the step's action, or waits for its gate.
func (s *Step) act(ctx context.Context) Result {
	changes, err := s.checkItself(ctx)
	switch {
	case err != nil:
		return s.failed("check", changes, err)
	case len(changes) == 0:
		return Result{Status: Unchanged}
	case s.Gate != nil:
		if err := s.Gate.Wait(ctx); err != nil {
			return s.failed("apply", nil, err)
		}
		return Result{Status: Changed, Changes: changes}
	}
	if err := s.Action.Apply(ctx); err != nil {
		left, errLeft := s.Action.Check(ctx)
		if errLeft != nil {
			left = changes
		}
		return s.failed("apply", made(changes, left), err)
	}
	return s.verify(ctx, changes)
}

// verify checks the action again, after changes have been made.
func (s *Step) verify(ctx context.Context, changes []string) Result {
	left, err := s.Action.Check(ctx)
	if err != nil {
		return s.failed("verify", nil, err)
	}
	if len(left) > 0 {
		err := fmt.Errorf("%w: %s", ledger.ErrRefused, strings.Join(left, "; "))
		return s.failed("verify", made(changes, left), err)
	}
	return Result{Status: Changed, Changes: changes}
}

// made returns the planned changes that are not left to do. If there is something
// left that was not planned, no more can be told of the others.
func made(planned, left []string) []string {
	done := slices.DeleteFunc(slices.Clone(planned), func(change string) bool { return slices.Contains(left, change) })
	if slices.ContainsFunc(left, func(change string) bool { return !slices.Contains(planned, change) }) {
		return nil
	}
	return done
}

// foreseen is the result of a dry run.
func foreseen(changes []string) Result {
	if len(changes) == 0 {
		return Result{Status: Unchanged}
	}
	return Result{Status: WouldChange, Changes: changes}
}

func (s *Step) failed(op string, changes []string, err error) Result {
	return Result{Status: Failed, Changes: changes, Err: &StepError{s.Name, op, err}}
}
