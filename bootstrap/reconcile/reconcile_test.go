// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package reconcile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/bootstrap/reconcile"
)

var errBoom = errors.New("boom")

// runs notes the runs of a plan.
type runs struct {
	start time.Time

	mu    sync.Mutex
	times []time.Duration
	err   error // of the step
}

func newRuns() *runs { return &runs{start: time.Now()} }

func (r *runs) plan() *bootstrap.Plan {
	check := func(context.Context) ([]string, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if now := time.Since(r.start); !slices.Contains(r.times, now) { // a run may look twice
			r.times = append(r.times, now)
		}
		return nil, r.err
	}
	return &bootstrap.Plan{Steps: []bootstrap.Step{{Name: "step", Action: bootstrap.Func(check, nil)}}}
}

// at says when they were.
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
		r, told := newRuns(), 0
		loop := reconcile.Loop{Plan: r.plan(), Interval: time.Minute, Done: func(report *bootstrap.Report, err error) {
			told++
			require.NoError(t, err)
			require.Equal(t, bootstrap.Unchanged, report.Results[0].Status)
		}}
		require.ErrorIs(t, loop.Run(ctx), context.DeadlineExceeded)
		require.Zero(t, r.at()[0])
		require.Equal(t, len(r.at()), told)
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
		require.ErrorIs(t, loop.Run(ctx), context.DeadlineExceeded)
		seconds := []int{1, 2, 4, 8, 16, 30, 30, 30, 30, 30, 30, 1, 2, 4} // the 10th and 11th are well
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
			done <- reconcile.Loop{Plan: r.plan(), Retry: time.Hour, Interval: 10 * time.Hour, Trigger: trigger}.Run(ctx)
		}()
		synctest.Wait()
		require.Len(t, r.at(), 1)
		for i := range 3 {
			time.Sleep(time.Second)
			trigger <- struct{}{}
			synctest.Wait()
			require.Len(t, r.at(), 2+i, "also while it waits after a failure")
			require.Equal(t, time.Second, r.waits()[i])
		}
		close(trigger)
		synctest.Wait()
		require.Len(t, r.at(), 4, "a closed one starts nothing")
		time.Sleep(10 * time.Hour)
		synctest.Wait()
		require.Len(t, r.at(), 5)
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
}

// Between repairs nobody on the node has to wait for a loop.
func TestPLAN2_LoopLocksForRepairsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		locks, n, broken := 0, 0, false
		plan := &bootstrap.Plan{
			Lock: func(context.Context) (func() error, error) { locks++; return nil, nil },
			Steps: []bootstrap.Step{{Name: "step", Action: bootstrap.Func(
				func(context.Context) ([]string, error) {
					if broken {
						return []string{"repair"}, nil
					}
					return nil, nil
				},
				func(context.Context) error { broken = false; return nil },
			)}},
		}
		want := []int{1, 1, 1, 2, 2} // the first run claims the node
		loop := reconcile.Loop{Plan: plan, Done: func(*bootstrap.Report, error) {
			require.Equal(t, want[n], locks)
			n++
			broken = n == 3
			if n == len(want) {
				cancel()
			}
		}}
		require.ErrorIs(t, loop.Run(ctx), context.Canceled)
	})
}

func TestLoopTouchesNothingWhereTheConfigurationIsMissing(t *testing.T) {
	dir := t.TempDir()
	files, j := journal.Files{Kind: "acme"}, open(t, filepath.Join(t.TempDir(), "state"), "pod")
	path, missing := filepath.Join(dir, "file"), false
	makeFile := func(ctx context.Context) error {
		return files.Make(ctx, j, path, journal.State{Type: "file"}, func() (bool, error) { return true, os.WriteFile(path, nil, 0o600) })
	}
	check := func(context.Context) ([]string, error) {
		if _, err := os.Stat(path); err == nil {
			return nil, nil
		}
		return []string{"make " + path}, nil
	}
	p := &bootstrap.Plan{
		Journal: j, Steps: []bootstrap.Step{{Name: "config", Skip: true}, {Name: "file", Action: bootstrap.Func(check, makeFile)}},
		Prepare: func(_ context.Context, p *bootstrap.Plan) error {
			if missing {
				return &bootstrap.StepError{Step: "config", Op: "resolve", Err: errBoom}
			}
			return nil
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	loop := reconcile.Loop{Plan: p, Retry: time.Microsecond, Interval: time.Microsecond, Done: func(r *bootstrap.Report, err error) {
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
	require.ErrorIs(t, loop.Run(ctx), context.Canceled)
	require.FileExists(t, path)
}

func open(t *testing.T, dir, owner string) *journal.Journal {
	t.Helper()
	j, err := (&journal.Node{Dir: dir, Agent: "test", Owner: owner, Handlers: []journal.Handler{journal.Files{Kind: "acme"}}}).Open(context.Background(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	return j
}

func TestPLAN11_LoopEndsWhereTheNodeIsSomebodyElses(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(t *testing.T, state string)
		want      error
	}{
		"taken over": {func(t *testing.T, state string) { apply(t, open(t, state, "newer")) }, journal.ErrNotOwner},
		"uninstalled": {func(t *testing.T, state string) {
			_, err := open(t, state, "older").RevertAll(t.Context())
			require.NoError(t, err)
		}, journal.ErrRevoked},
	} {
		t.Run(name, func(t *testing.T) {
			state, n := filepath.Join(t.TempDir(), "state"), 0
			r := newRuns()
			p := r.plan()
			p.Journal = open(t, state, "older")
			loop := reconcile.Loop{Plan: p, Interval: time.Microsecond, Done: func(_ *bootstrap.Report, err error) {
				if n++; n == 3 {
					require.NoError(t, err)
					tc.meanwhile(t, state)
				}
			}}
			require.ErrorIs(t, loop.Run(t.Context()), tc.want)
			require.Equal(t, 4, n, "the last run is told of too")
			require.Len(t, r.at(), 3, "and looks at no step")
		})
	}
}

func apply(t *testing.T, j *journal.Journal) {
	t.Helper()
	_, err := (&bootstrap.Plan{Journal: j}).Apply(t.Context())
	require.NoError(t, err)
}

func TestALoopWithoutAPlanSaysSo(t *testing.T) {
	require.ErrorContains(t, reconcile.Loop{}.Run(t.Context()), "needs a plan")
	require.Error(t, reconcile.Loop{Plan: newRuns().plan(), Interval: -1}.Run(t.Context()))
}
