// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// around is another package's wrapper, which has a Revert whatever it wraps.
type around struct{ bootstrap.Action }

func (a around) Unwrap() bootstrap.Action { return a.Action }

func (a around) Revert(ctx context.Context) error {
	if r, ok := a.Action.(bootstrap.Reverter); ok {
		return r.Revert(ctx)
	}
	return errors.ErrUnsupported
}

// wrappers are ways to wrap an action that must not change a plan's behaviour.
var wrappers = map[string]func(bootstrap.Action) bootstrap.Action{
	"alone":   func(a bootstrap.Action) bootstrap.Action { return a },
	"retried": func(a bootstrap.Action) bootstrap.Action { return bootstrap.Retry(a, nil) },
	"wrapped": func(a bootstrap.Action) bootstrap.Action { return around{a} },
	"wrapped deeply": func(a bootstrap.Action) bootstrap.Action {
		return around{bootstrap.Retry(around{bootstrap.Retry(a, nil)}, nil)}
	},
}

func check(context.Context) ([]string, error) { return nil, nil }
func apply(context.Context) error             { return nil }

// atPlaces is an action that makes objects at places on the host.
type atPlaces struct{ bootstrap.FuncAction }

func (atPlaces) Places() map[string]string { return map[string]string{"/run/x": ""} }

func TestPLAN19_WhatCouldNotBeUndoneIsRefused(t *testing.T) {
	f := bootstrap.Func(check, apply)
	refused := map[string]struct {
		action bootstrap.Action
		want   string
	}{
		"no handler":          {f.In("mnt").Recording("acme/file", "other/thing"), "no handler for what it records, other/thing"},
		"another namespace":   {f.In("net").Recording("acme/file"), "the handler of acme/file acts in the host's namespace mnt, and the action does not"},
		"no namespace at all": {f.Recording("acme/file"), "the handler of acme/file acts in the host's namespace mnt"},
		"says nothing":        {f, "says neither what it records (it is no Recorder) nor how it is reverted (implement Kinds, use Func(...).Recording, or set NoUndo if that is meant)"},
		"says where only":     {f.In("mnt"), "says neither what it records"},
	}
	for how, wrap := range wrappers {
		for name, tc := range refused {
			s := step("s", wrap(tc.action))
			p := &bootstrap.Plan{Host: &host{}, Journal: node(t.TempDir(), "pod"), Steps: []bootstrap.Step{s}}
			require.ErrorContains(t, p.Validate(), `step "s" could not be undone: `, "%s, %s", name, how)
			require.ErrorContains(t, p.Validate(), tc.want, "%s, %s", name, how)

			p.Steps[0].NoUndo = true
			require.NoError(t, p.Validate(), "%s, %s: deliberate", name, how)
			p.Steps[0] = skipped(s)
			require.NoError(t, p.Validate(), "%s, %s: left out", name, how)
			p.Steps[0].Skip, p.Steps[0].Absent = false, true
			require.NoError(t, p.Validate(), "%s, %s: it no longer records anything", name, how)
			p.Steps, p.Journal = []bootstrap.Step{s}, nil
			require.NoError(t, p.Validate(), "%s, %s: NoUndo", name, how)
			require.NoError(t, (&bootstrap.Plan{Host: &host{away: true}, Journal: node(t.TempDir(), "pod"), Steps: []bootstrap.Step{
				{Name: "s", Local: true, Action: wrap(tc.action)},
			}}).Validate(), "%s, %s: it is meant for the container, whose end it does not outlive", name, how)
		}
		for name, action := range map[string]bootstrap.Action{
			"recorded":            f.In("net", "mnt").Recording("acme/file", "acme/dir"),
			"nothing to undo":     f.Recording(),
			"a Reverter":          todo(),
			"a Reverter, blind":   blind(todo()),
			"recorded, of a type": file{"/x"},
		} {
			p := &bootstrap.Plan{Host: &host{}, Journal: node(t.TempDir(), "pod"), Steps: []bootstrap.Step{step("s", wrap(action))}}
			require.NoError(t, p.Validate(), "%s, %s", name, how)
		}
	}
}

func TestSEC10_WhatIsOnAHostNeedsOne(t *testing.T) {
	f := bootstrap.Func(check, apply)
	for how, wrap := range wrappers {
		for name, action := range map[string]bootstrap.Action{"namespaces": f.In("mnt"), "places": atPlaces{f}} {
			s := step("s", wrap(action))
			absent := s
			absent.Absent = true
			for where, p := range map[string]*bootstrap.Plan{
				"step": {Steps: []bootstrap.Step{s}}, "gate": {Gates: []bootstrap.Step{s}}, "absent": {Steps: []bootstrap.Step{absent}},
			} {
				require.ErrorContains(t, p.Validate(), "set Host", "%s, %s, %s", name, where, how)
				p.Host = &host{}
				require.NoError(t, p.Validate(), "%s, %s, %s", name, where, how)
			}
			s.Local = true
			require.NoError(t, (&bootstrap.Plan{Steps: []bootstrap.Step{s}}).Validate(), "%s, %s: deliberately local", name, how)
		}
	}
	p := &bootstrap.Plan{Journal: node(t.TempDir(), "pod")}
	require.ErrorContains(t, p.Validate(), "it has a journal and no Host")
}

func TestPLAN11_AJournalSaysForWhom(t *testing.T) {
	for want, n := range map[string]*journal.Node{
		"no owner is named":     {Agent: "a"},
		"the agent has no name": {NoOwner: true},
		`agent "A b": want`:     {Agent: "A b", NoOwner: true},
		"a nil *journal.Node":   nil,
	} {
		p := &bootstrap.Plan{Host: &host{}, Journal: n}
		require.ErrorContains(t, p.Validate(), want)
		report, err := p.Apply(t.Context())
		require.ErrorContains(t, err, "invalid plan: ")
		require.ErrorContains(t, report.Err, want)
	}
}

func TestPLAN2_PLAN16_AStepDoesNotWaitForLongWithTheLockHeld(t *testing.T) {
	const most = bootstrap.MaxWaits
	a := todo()
	for name, tc := range map[string]struct {
		action bootstrap.Action
		long   bool
	}{
		"as long as it may":        {bootstrap.Retry(a, nil, most/2, most/2), false},
		"one too long":             {bootstrap.Retry(a, nil, most+1), true},
		"together too long":        {bootstrap.Retry(a, nil, most/2, most/2, 1), true},
		"wrapped":                  {around{bootstrap.Retry(a, nil, most+1)}, true},
		"the inner one":            {bootstrap.Retry(around{bootstrap.Retry(a, nil, most+1)}, nil, 1), true},
		"the inner one each time":  {bootstrap.Retry(bootstrap.Retry(a, nil, most/2), nil, 0, 0), true},
		"together with the inner":  {bootstrap.Retry(bootstrap.Retry(a, nil, most/2), nil, most/2), true},
		"twice, not too long":      {bootstrap.Retry(bootstrap.Retry(a, nil, most/4), nil, most/2), false},
		"a negative one helps not": {bootstrap.Retry(a, nil, -time.Hour, most+1), true},
		"for ever":                 {bootstrap.Retry(bootstrap.Retry(a, nil, 1<<62, 1<<62), nil, 1<<62, 1<<62), true},
		"for other programs":       {waiting{a}, true},
		"for them, and retried":    {bootstrap.Retry(waiting{a}, nil, 1), true},
	} {
		s := step("s", tc.action)
		err := (&bootstrap.Plan{Steps: []bootstrap.Step{s}}).Validate()
		require.Equal(t, tc.long, err != nil, "%s: %v", name, err)
		if tc.long {
			require.ErrorContains(t, err, "make it one of Gates", name)
		}
		require.NoError(t, (&bootstrap.Plan{Gates: []bootstrap.Step{s}}).Validate(), "%s: a gate may wait", name)
	}
}

// A plan changed by Prepare is validated again, before anything is locked.
func TestPLAN19_APreparedPlanIsValidatedAgain(t *testing.T) {
	for want, prepare := range map[string]func(p *bootstrap.Plan){
		"says neither what it records":        func(p *bootstrap.Plan) { p.Step("s").Action = bootstrap.Func(check, apply) },
		"no handler for what it records, x/y": func(p *bootstrap.Plan) { p.Step("s").Action = bootstrap.Func(check, apply).Recording("x/y") },
		"holds the node's lock meanwhile":     func(p *bootstrap.Plan) { p.Step("s").Action = bootstrap.Retry(todo(), nil, time.Hour) },
		`step "s" has no action`:              func(*bootstrap.Plan) {},
		"it has a journal and no Host":        func(p *bootstrap.Plan) { p.Step("s").Action, p.Host = todo(), nil },
		"invalid plan: state directory":       func(p *bootstrap.Plan) { p.Step("s").Action, p.Journal = todo(), &journal.Node{Dir: "x"} },
	} {
		for _, run := range []func(*bootstrap.Plan, context.Context) (*bootstrap.Report, error){(*bootstrap.Plan).Check, (*bootstrap.Plan).Apply} {
			dir := t.TempDir() + "/state"
			p := &bootstrap.Plan{
				Host: &host{note: func(what string) { t.Error(want, ": ", what) }}, Journal: node(dir, "pod"), Steps: []bootstrap.Step{step("s", nil)},
				Prepare: func(_ context.Context, p *bootstrap.Plan) error { prepare(p); return nil },
			}
			report, err := run(p, t.Context())
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, report.Err, want)
			require.Equal(t, "s not-run", statuses(report))
			require.NoDirExists(t, dir)
		}
	}
}

// An error that is none of a step's ends a run that is being prepared, and no step is blamed.
func TestPLAN21_AFailureOfNoStepLeavesAReasonForEachStep(t *testing.T) {
	ends := unwritable{errors.New("no host")}
	plan := bootstrap.Plan{
		Steps:   []bootstrap.Step{{Name: "first"}, {Name: "second"}},
		Prepare: func(context.Context, *bootstrap.Plan) error { return ends },
	}
	for _, run := range []func(context.Context) (*bootstrap.Report, error){plan.Check, plan.Apply} {
		report, err := run(t.Context())
		require.ErrorIs(t, err, ends)
		require.ErrorIs(t, report.Err, ends)
		require.Len(t, report.Results, 2)
		for _, r := range report.Results {
			require.Equal(t, bootstrap.NotRun, r.Status)
			require.Equal(t, "the plan stopped before it", r.Reason)
		}
	}
}

// The error of a step that was waiting when the run was to end names why that was.
func TestPLAN20_AWaitThatEndsNamesTheCause(t *testing.T) {
	cause := errors.New("--timeout of 3s is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	waiting := &bootstraptest.Script{Changes: []string{"one"}}
	waiting.Hook = func(ctx context.Context, call string) error {
		if call != "apply" {
			return nil
		}
		cancel(cause)
		return fmt.Errorf("wait for it: %w", ctx.Err())
	}
	_, err := (&bootstrap.Plan{Steps: []bootstrap.Step{{Name: "waits", Action: waiting}}}).Apply(ctx)
	require.EqualError(t, err, "step waits: apply: wait for it: context canceled: --timeout of 3s is over")
	require.ErrorIs(t, err, context.Canceled)
}

// denied is an action whose Check succeeds and whose Apply is denied.
type denied struct{ *bootstraptest.Script }

func (denied) CheckPermission(context.Context) error { return fs.ErrPermission }

func TestPLAN17_WhatMayNotBeDoneIsKnownBeforeTheFirstChange(t *testing.T) {
	first, second := &bootstraptest.Script{Changes: []string{"one"}}, &bootstraptest.Script{Changes: []string{"two"}}
	plan := bootstrap.Plan{Steps: []bootstrap.Step{{Name: "first", Action: first}, {Name: "second", After: []string{"first"}, Action: denied{second}}}}
	report, err := plan.Check(t.Context())
	if os.Geteuid() == 0 {
		require.ErrorIs(t, err, fs.ErrPermission)
	} else {
		require.NoError(t, err, "a user may look who may change nothing")
		require.Equal(t, 2, report.Count(bootstrap.WouldChange))
	}
	report, err = plan.Apply(t.Context())
	require.ErrorIs(t, err, fs.ErrPermission)
	require.Equal(t, "plan.permission", report.Code())
	require.False(t, first.Applied())
	second.Changes = nil
	_, err = plan.Apply(t.Context())
	require.NoError(t, err, "without changes no permission is needed")
	require.True(t, first.Applied())
}

func TestPLAN19_ANilIsSaidAndNoPanic(t *testing.T) {
	var h *hostns.Host
	var j *journal.Node
	var a *bootstraptest.Script
	for want, p := range map[string]*bootstrap.Plan{
		"the host is a nil *hostns.Host":                             {Host: h},
		"the journal is a nil *journal.Node":                         {Host: hostns.Host{}, Journal: j},
		`the action of step "a" is a nil *bootstraptest.Script`:      {Steps: []bootstrap.Step{{Name: "a", Action: a}}},
		`the action of step "a gate" is a nil *bootstraptest.Script`: {Gates: []bootstrap.Step{{Name: "a gate", Action: a}}},
	} {
		require.ErrorContains(t, p.Validate(), want)
	}
}

// waiting is an action that waits for other programs, as a gate does.
type waiting struct{ *bootstraptest.Script }

func (waiting) Waits() time.Duration { return time.Minute }

// illFormed is an action whose own fields are wrong.
type illFormed struct{ *bootstraptest.Script }

func (illFormed) Validate() error { return errBoom }

func TestPLAN17_OwnFieldsFailAlsoAfterWhatWouldChange(t *testing.T) {
	first := &bootstraptest.Script{Changes: []string{"one"}}
	second := illFormed{&bootstraptest.Script{CheckErrs: []error{errBoom, errBoom}}}
	p := bootstrap.Plan{Steps: []bootstrap.Step{{Name: "first", Action: first}, {Name: "second", After: []string{"first"}, Action: second}}}
	report, err := p.Check(t.Context())
	require.ErrorIs(t, err, errBoom)
	require.Equal(t, 1, report.Count(bootstrap.Failed))
	_, err = p.Apply(t.Context())
	require.ErrorIs(t, err, errBoom)
	require.False(t, first.Applied())
}

// With NoUndo, an action's own Revert is not called either.
func TestPLAN19_WhatIsNotToBeUndoneIsNotRevertedEither(t *testing.T) {
	own := &bootstraptest.Script{Changes: []string{"one"}}
	p := bootstrap.Plan{Steps: []bootstrap.Step{{Name: "own", Action: own, NoUndo: true}}}
	_, err := p.Apply(t.Context())
	require.NoError(t, err)
	_, err = p.Revert(t.Context())
	require.NoError(t, err)
	require.True(t, own.Applied())
}

// unwritable is an error such as a journal's.
type unwritable struct{ error }

func (unwritable) EndsPlan() {}
