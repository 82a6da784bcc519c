// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// hosted is a Script whose object is on a host: in namespaces, and at a place.
type hosted struct{ *bootstraptest.Script }

func (hosted) Namespaces() []string      { return []string{"net", "mnt"} }
func (hosted) Places() map[string]string { return map[string]string{"/run/x": "bpf"} }

// Advise runs where Check does.
func (h hosted) Advise(ctx context.Context) ([]string, error) {
	return []string{"in " + inside(ctx)}, nil
}

// where is a step that notes where each method is called.
func where(log *[]string, wrap func(bootstrap.Action) bootstrap.Action) bootstrap.Step {
	script := todo()
	script.Hook = func(ctx context.Context, call string) error {
		*log = append(*log, call+" in "+inside(ctx))
		return nil
	}
	return step("a", wrap(hosted{script}))
}

func TestSEC10_APlanCallsAnActionWhereItsObjectsAre(t *testing.T) {
	for how, wrap := range wrappers {
		var log []string
		p := &bootstrap.Plan{Steps: []bootstrap.Step{where(&log, wrap)}}
		p.Host = &host{away: true, note: func(what string) { log = append(log, what) }}
		const place, enter = "place /run/x bpf", "enter mnt+net"
		for _, tc := range []struct {
			run  func(context.Context) (*bootstrap.Report, error)
			want []string
		}{
			{p.Check, []string{place, enter, "check in mnt+net"}},
			{p.Apply, []string{place, enter, "check in mnt+net", "lock", place, enter, "check in mnt+net", "apply in mnt+net", "check in mnt+net", "unlock"}},
		} {
			log = nil
			report, err := tc.run(t.Context())
			require.NoError(t, err, how)
			require.Equal(t, tc.want, log, how)
			if how == "alone" || how == "retried" {
				require.Equal(t, []string{"in mnt+net"}, report.Results[0].Advice, how)
			}
		}
		looks, reverts := []string{place, enter, "check-revert in mnt+net"}, []string{place, enter, "revert in mnt+net"}
		if how == "wrapped" || how == "wrapped deeply" {
			looks = nil // a foreign wrapper cannot say what it would revert
		}
		log = nil
		_, err := p.CheckRevert(t.Context())
		require.NoError(t, err)
		require.Equal(t, looks, log, how)
		log = nil
		_, err = p.Revert(t.Context())
		require.NoError(t, err)
		require.Equal(t, slices.Concat([]string{"lock"}, looks, reverts, looks, []string{"unlock"}), log, how)
	}
}

func TestSEC10_WhatIsLocalIsNotEntered(t *testing.T) {
	var log []string
	s := where(&log, wrappers["retried"])
	s.Local = true
	p := &bootstrap.Plan{Steps: []bootstrap.Step{s}, Host: &host{away: true, note: func(what string) { log = append(log, what) }}}
	for _, run := range []func(context.Context) (*bootstrap.Report, error){p.Check, p.Apply, p.CheckRevert, p.Revert} {
		_, err := run(t.Context())
		require.NoError(t, err)
	}
	require.Equal(t, []string{"check in ", "check in ", "lock", "check in ", "apply in ", "check in ", "unlock",
		"check-revert in ", "lock", "check-revert in ", "revert in ", "check-revert in ", "unlock"}, log)
}

// A change that would stay in the container is refused before anything else happens.
func TestSEC10_APlanRefusesWhatWouldStayInTheContainer(t *testing.T) {
	for how, wrap := range wrappers {
		var log []string
		first := todo()
		p := &bootstrap.Plan{Steps: []bootstrap.Step{step("first", first), where(&log, wrap)}}
		p.Host = &host{placesErr: errors.New("that would stay in the container")}
		for _, run := range []func(context.Context) (*bootstrap.Report, error){p.Check, p.Apply} {
			report, err := run(t.Context())
			require.EqualError(t, err, "step a: check: that would stay in the container", how)
			require.Equal(t, bootstrap.Failed, report.Results[1].Status)
		}
		require.Empty(t, log, how)
		require.NotContains(t, first.Calls(), "apply", how)
	}
}

func TestAHostThatCannotBeEnteredIsAnErrorOfTheStep(t *testing.T) {
	var log []string
	p := &bootstrap.Plan{Steps: []bootstrap.Step{where(&log, wrappers["alone"])}, Host: &host{enterErr: errBoom}}
	for op, run := range map[string]func(context.Context) (*bootstrap.Report, error){
		"check": p.Check, "check ": p.Apply, "check-revert": p.CheckRevert, "check-revert ": p.Revert,
	} {
		_, err := run(t.Context())
		require.ErrorIs(t, err, errBoom, op)
		require.ErrorContains(t, err, "step a: ", op)
	}
	require.Empty(t, log)
	p.Journal = node(t.TempDir()+"/state", "pod")
	report, err := p.Check(t.Context())
	require.ErrorIs(t, err, errBoom)
	require.ErrorIs(t, report.Err, errBoom, "the journal is on the host too, so the error is the plan's")
}

// A guard beside a plan acts where the step does, and can look up the step's records.
func TestPlanInside(t *testing.T) {
	dir := t.TempDir()
	var log []string
	h := &host{away: true}
	p := &bootstrap.Plan{Host: h, Journal: node(dir+"/state", "pod"), Steps: []bootstrap.Step{step("file", file{dir + "/file"})}}
	_, err := p.Apply(t.Context())
	require.NoError(t, err)

	h.note = func(what string) { log = append(log, what) }
	called := 0
	require.NoError(t, p.Inside(t.Context(), "file", []string{"mnt", "net"}, func(ctx context.Context) error {
		called++
		require.Equal(t, "mnt+net", inside(ctx))
		recorded, err := journal.From(ctx).Recorded(ctx)
		require.NoError(t, err)
		require.Len(t, recorded, 1)
		return nil
	}))
	require.ErrorIs(t, p.Inside(t.Context(), "another", nil, func(ctx context.Context) error {
		called++
		require.Empty(t, inside(ctx))
		recorded, err := journal.From(ctx).Recorded(ctx)
		require.NoError(t, err)
		require.Empty(t, recorded)
		return errBoom
	}), errBoom)
	require.Equal(t, 2, called)
	require.Equal(t, []string{"enter mnt+net"}, log, "nothing is locked")

	unwanted := func(context.Context) error { t.Error("called"); return nil }
	h.enterErr = errBoom
	require.ErrorIs(t, p.Inside(t.Context(), "file", []string{"mnt"}, unwanted), errBoom)
	_, err = on(t, node(dir+"/state", "newer"), step("file", file{dir + "/file"})).Apply(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, p.Inside(t.Context(), "file", nil, unwanted), journal.ErrRevoked, "the node has another owner by now")

	require.NoError(t, (&bootstrap.Plan{}).Inside(t.Context(), "x", nil, func(ctx context.Context) error {
		require.Nil(t, journal.From(ctx))
		return nil
	}))
}
