// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// shared is a node that several processes change.
type shared struct{ dir string }

func (s shared) state() string { return filepath.Join(s.dir, "state") }

// plan is the plan of one of the owner's processes.
func (s shared) plan(owner string, steps ...bootstrap.Step) *bootstrap.Plan {
	return &bootstrap.Plan{Host: hostns.Host{LockFile: filepath.Join(s.dir, "lock")}, Journal: node(s.state(), owner), Steps: steps}
}

func TestPLAN11_AnApplyWaitsWhileAnUninstallRuns(t *testing.T) {
	s := shared{t.TempDir()}
	_, err := s.plan("a", step("file", file{s.dir + "/file"})).Apply(t.Context())
	require.NoError(t, err)

	uninstalling, goOn := make(chan bool), make(chan bool)
	slow := reverter{todo(), func(context.Context) error {
		uninstalling <- true
		<-goOn
		return nil
	}}
	uninstalled := make(chan error, 1)
	go func() {
		_, err := s.plan("a", step("file", file{s.dir + "/file"}), step("slow", slow)).Revert(t.Context())
		uninstalled <- err
	}()
	<-uninstalling
	waits, applied := make(chan string, 1), make(chan error, 1)
	second := s.plan("b", step("file", file{s.dir + "/file"}))
	second.Trace = &bootstrap.Trace{Waiting: func(_ context.Context, w bootstrap.Wait) { waits <- w.For }}
	go func() {
		_, err := second.Apply(t.Context())
		applied <- err
	}()
	require.Contains(t, <-waits, `owner "a"`, "it says for whom")
	require.Equal(t, "a", ownerIn(t, s.state()), "and has claimed nothing")
	goOn <- true
	require.NoError(t, <-uninstalled)
	require.NoError(t, <-applied)
	require.Equal(t, "b", ownerIn(t, s.state()))
	require.FileExists(t, s.dir+"/file", "it noticed that it was uninstalled meanwhile")
}

func TestPLAN11_AClaimWhileAnUninstallEndsIsKept(t *testing.T) {
	for i := range 12 {
		s := shared{t.TempDir()}
		first, second := s.plan("a", step("file", file{s.dir + "/file"})), s.plan("b", step("file", file{s.dir + "/file"}))
		_, err := first.Apply(t.Context())
		require.NoError(t, err)
		applied := make(chan error, 1)
		go func() {
			time.Sleep(time.Duration(i) * 160 * time.Microsecond)
			_, err := second.Apply(t.Context())
			applied <- err
		}()
		_, err = first.RevertAll(t.Context())
		if err != nil {
			require.ErrorIs(t, err, journal.ErrNotOwner, "the second one was faster")
		}
		require.NoError(t, <-applied)
		require.Equal(t, "b", ownerIn(t, s.state()))
		require.FileExists(t, s.dir+"/file")
	}
}

func TestPLAN11_OfTwoWhoClaimAtOnceOneHasTheNode(t *testing.T) {
	for range 5 {
		s := shared{t.TempDir()}
		plans := []*bootstrap.Plan{s.plan("one", step("file", file{s.dir + "/file"})), s.plan("two", step("file", file{s.dir + "/file"}))}
		claimed := make(chan error, len(plans))
		for _, p := range plans {
			go func() {
				_, err := p.Apply(t.Context())
				claimed <- err
			}()
		}
		require.NoError(t, <-claimed)
		require.NoError(t, <-claimed, "the later one takes over")
		has := 0
		for _, p := range plans {
			_, err := p.Apply(t.Context())
			if err == nil {
				has++
				continue
			}
			require.ErrorIs(t, err, journal.ErrNotOwner)
		}
		require.Equal(t, 1, has)
	}
}

// The node keeps the report of the last run that changed something or failed.
func TestPLAN18_PLAN20_TheLastRunIsKept(t *testing.T) {
	s := shared{t.TempDir()}
	last := func() (r bootstrap.Report) {
		t.Helper()
		j, err := node(s.state(), "a").Open(t.Context(), nil)
		require.NoError(t, err)
		defer j.Close()
		text, when, err := j.LastReport()
		require.NoError(t, err)
		if when.IsZero() {
			return r
		}
		require.NoError(t, json.Unmarshal(text, &r))
		return r
	}
	fails := &bootstraptest.Script{}
	plan := s.plan("a", step("file", file{s.dir + "/file"}), bootstrap.Step{Name: "fails", Action: fails, NoUndo: true})
	plan.Version = "v1"
	_, err := plan.Apply(t.Context())
	require.NoError(t, err)
	first := last()
	require.Equal(t, []any{bootstrap.OpApply, "v1", "a", 1, 1}, []any{first.Op, first.Version, first.Owner, first.Generation, first.Count(bootstrap.Changed)})

	_, err = plan.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, last(), "nothing was done")

	fails.CheckErrs = append(make([]error, len(fails.Calls())), errors.New("boom"))
	_, err = plan.Apply(t.Context())
	require.Error(t, err)
	failed := last()
	require.True(t, failed.Failed())
	require.Equal(t, "plan.failed", failed.Code())

	next := s.plan("b", bootstrap.Step{Name: "fails", Action: unreadable(), NoUndo: true})
	_, err = next.Apply(t.Context())
	require.ErrorIs(t, err, errBoom)
	require.Equal(t, "b", last().Owner, "the next owner's failure")
	require.Equal(t, "a", ownerIn(t, s.state()), "which claims nothing")
	_, err = s.plan("b").Apply(t.Context())
	require.NoError(t, err)
	others := last()
	require.Equal(t, "b", others.Owner)
	_, err = plan.Apply(t.Context())
	require.ErrorIs(t, err, journal.ErrNotOwner)
	require.Equal(t, others, last(), "a superseded owner leaves no report")

	next.Steps = append(next.Steps, bootstrap.Step{Name: "x", After: []string{"nowhere"}})
	_, err = next.RevertAll(t.Context())
	require.NoError(t, err, "an uninstall depends on no step")
	require.NoDirExists(t, s.state(), "removed with the journal")
}
