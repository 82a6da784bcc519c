// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package reconcile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/bootstrap/reconcile"
)

var errBoom = errors.New("boom")

// runs records the times at which a plan's step is checked.
type runs struct {
	start time.Time

	mu    sync.Mutex
	times []time.Duration
	err   error // of the step
}

func newRuns() *runs { return &runs{start: time.Now()} }

func (r *runs) plan() *bootstrap.Plan {
	isDone := func(context.Context) (bool, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if now := time.Since(r.start); !slices.Contains(r.times, now) { // a run may check twice
			r.times = append(r.times, now)
		}
		return r.err == nil, r.err
	}
	return &bootstrap.Plan{Steps: []bootstrap.Step{{Name: "step", Action: bootstrap.Func("change", isDone, nil)}}}
}

// at returns the times of the runs.
func (r *runs) at() []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.times)
}

func (r *runs) waits() (waits []time.Duration) {
	at := r.at()
	for i := range at[1:] {
		waits = append(waits, at[i+1]-at[i])
	}
	return waits
}

func TestLoopRunsNowAndWithinEachInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		r, calls := newRuns(), 0
		loop := reconcile.Loop{Plan: r.plan(), Interval: time.Minute, Done: func(report *bootstrap.Report, err error) {
			calls++
			require.NoError(t, err)
			require.Equal(t, bootstrap.Unchanged, report.Results[0].Status)
		}}
		require.NoError(t, loop.Run(ctx))
		require.Zero(t, r.at()[0])
		require.Equal(t, len(r.at()), calls)
		different := map[time.Duration]bool{}
		for _, wait := range r.waits() {
			require.LessOrEqual(t, wait, time.Minute)
			require.GreaterOrEqual(t, wait, 48*time.Second)
			different[wait] = true
		}
		require.Greater(t, len(different), len(r.at())/2, "at random")
	})
}

func TestLoopComesBackSoonAfterAFailureThenLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		r := newRuns()
		r.err = errBoom
		loop := reconcile.Loop{Plan: r.plan(), Interval: 30 * time.Second, Done: func(_ *bootstrap.Report, err error) {
			require.Equal(t, r.err != nil, err != nil)
			if len(r.at()) == 9 {
				r.err = nil
			} else if len(r.at()) == 11 {
				r.err = errBoom
			}
		}}
		require.NoError(t, loop.Run(ctx))
		seconds := []int{1, 2, 4, 8, 16, 30, 30, 30, 30, 30, 30, 1, 2, 4} // the 10th and 11th succeed
		for i, longest := range seconds {
			wait, longest := r.waits()[i], time.Duration(longest)*time.Second
			require.LessOrEqual(t, wait, longest, i)
			require.GreaterOrEqual(t, wait, longest*4/5, i)
		}
	})
}

func TestLoopRunsAtOnceWhenTriggered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r, trigger := newRuns(), make(chan struct{}, 1)
		r.err = errBoom
		done := make(chan error)
		go func() {
			done <- reconcile.Loop{Plan: r.plan(), Interval: 10 * time.Hour, Trigger: trigger}.Run(ctx)
		}()
		synctest.Wait()
		require.Len(t, r.at(), 1)
		for i := range 3 {
			time.Sleep(time.Second / 2)
			trigger <- struct{}{}
			synctest.Wait()
			require.Len(t, r.at(), 2+i, "even while it waits after a failure")
			require.Equal(t, time.Second/2, r.waits()[i])
		}
		close(trigger)
		synctest.Wait()
		require.Len(t, r.at(), 4, "a closed channel triggers no run")
		time.Sleep(8 * time.Second)
		synctest.Wait()
		require.Len(t, r.at(), 5)
		cancel()
		require.NoError(t, <-done)
	})
}

// here is the test's own host, with its own lock.
func here(dir string) hostns.Host {
	return hostns.Host{Here: true, LockFile: filepath.Join(dir, "lock"), LockTimeout: -1}
}

// remembers is a ledger below dir.
func remembers(dir, owner string) *ledger.Ledger {
	return &ledger.Ledger{Dir: filepath.Join(dir, "state"), Agent: "agent", Owner: owner}
}

// file wants an empty file.
type file string

func (f file) Wants(context.Context) (ledger.Wants, error) {
	return ledger.Wants{List: []ledger.Want{ledger.FileWant(string(f), 0o644, nil)}}, nil
}

// Between repairs a loop holds no lock that other programs wait for, and takes none.
func TestPLAN2_LoopLocksForRepairsOnly(t *testing.T) {
	dir := t.TempDir()
	path, n := filepath.Join(dir, "file"), 0
	ctx, cancel := context.WithCancel(t.Context())
	plan := &bootstrap.Plan{Host: here(dir), Ledger: remembers(dir, "pod"), Steps: []bootstrap.Step{{Name: "file", Wants: file(path)}}}
	_, err := plan.Apply(t.Context())
	require.NoError(t, err)
	held, err := here(dir).Lock(t.Context(), "another program")
	require.NoError(t, err)
	loop := reconcile.Loop{Plan: plan, Interval: time.Microsecond, Done: func(_ *bootstrap.Report, err error) {
		switch n++; n {
		case 1, 2: // it only looks, although another program has the lock
			require.NoError(t, err)
			if n == 2 {
				require.NoError(t, os.Remove(path))
			}
		case 3:
			require.ErrorIs(t, err, hostns.ErrLocked)
			require.NoError(t, held())
		default:
			require.NoError(t, err)
			require.FileExists(t, path)
			unlock, err := here(dir).Lock(t.Context(), "another program")
			require.NoError(t, err)
			require.NoError(t, unlock())
			cancel()
		}
	}}
	require.NoError(t, loop.Run(ctx))
}

func TestLoopTouchesNothingWhereTheConfigurationIsMissing(t *testing.T) {
	dir := t.TempDir()
	path, missing := filepath.Join(dir, "file"), false
	p := &bootstrap.Plan{
		Host: here(dir), Ledger: remembers(dir, "pod"),
		Steps: []bootstrap.Step{{Name: "config", Skip: "asked for"}, {Name: "file", Wants: file(path)}},
		Prepare: func(_ context.Context, p *bootstrap.Plan) error {
			if missing {
				return &bootstrap.StepError{Step: "config", Op: "resolve", Err: errBoom}
			}
			return nil
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	loop := reconcile.Loop{Plan: p, Interval: time.Microsecond, Done: func(r *bootstrap.Report, err error) {
		switch n++; {
		case n == 1:
			require.NoError(t, err)
			missing = true
		case n < 5:
			require.ErrorIs(t, err, errBoom)
			require.Equal(t, bootstrap.Blocked, r.Results[1].Status)
		default:
			cancel()
		}
		require.FileExists(t, path)
	}}
	require.NoError(t, loop.Run(ctx))
	require.FileExists(t, path)
}

// A gate is passed once: if it closes later, the loop still repairs the node, and later steps
// are not blocked.
func TestPLAN16_LoopPassesEachGateOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		first, second := &bootstraptest.Script{}, &bootstraptest.Script{Errs: map[string][]error{"check": {errBoom}}}
		spare := &bootstraptest.Script{Changes: []string{"wait"}, Errs: map[string][]error{"wait": {errBoom, errBoom, errBoom}}}
		r, n := newRuns(), 0
		plan := r.plan()
		plan.Steps[0].After = []string{"second"}
		plan.Gates = []bootstrap.Step{{Name: "first", Gate: first}, {Name: "spare", Gate: spare, Optional: true}, {Name: "second", Gate: second}}
		want := []string{
			"first unchanged, spare failed, second failed, step blocked",
			"first skipped, spare failed, second unchanged, step failed",
			"first skipped, spare failed, second skipped, step unchanged",
			"first skipped, spare changed, second skipped, step unchanged",
			"first skipped, spare skipped, second skipped, step unchanged",
		}
		loop := reconcile.Loop{Plan: plan, Done: func(report *bootstrap.Report, err error) {
			var steps []string
			for _, result := range report.Results {
				steps = append(steps, result.Step+" "+string(result.Status))
				require.Equal(t, result.Status == bootstrap.Skipped, result.Reason != "", "it gives the reason")
			}
			require.Equal(t, want[n], strings.Join(steps, ", "))
			require.Equal(t, n < 2, err != nil)
			if r.err = nil; n == 0 {
				r.err = errBoom
			}
			if n++; n == len(want) {
				cancel()
			}
		}}
		require.NoError(t, loop.Run(ctx))
		require.Len(t, first.Calls(), 1)
		require.Len(t, second.Calls(), 2)
		require.Empty(t, plan.Gates[0].Skip, "the caller's plan is left")
	})
}
