// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package gate_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/gate"
	"github.com/slipway-dev/slipway/internal/code"
)

var (
	_ bootstrap.Gate   = gate.Gate{}
	_ bootstrap.Hosted = gate.Gate{}
)

// A gate reports at once and every five seconds what it waits for, and its error at the
// deadline includes the last observation.
func TestRDY1_AGateSaysWhatItWaitsForAndWhatItLastSaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var traced []time.Duration
		g := gate.Gate{Name: "the moon", Timeout: 12 * time.Second,
			Probe: func(context.Context) (string, error) {
				if time.Since(start) > 8*time.Second {
					return "it is red\x1b[2J", nil
				}
				return "it is new", nil
			},
		}
		plan := bootstrap.Plan{
			Gates: []bootstrap.Step{{Name: "gate", Gate: g}},
			Steps: []bootstrap.Step{{Name: "next", Action: bootstrap.Func("fail", nil, nil)}},
			Trace: &bootstrap.Trace{Waiting: func(_ context.Context, step, what string, _ time.Duration) {
				require.Equal(t, "gate", step)
				require.Regexp(t, `^the moon: it is (new|red)`, what)
				traced = append(traced, time.Since(start).Round(time.Second))
			}},
		}
		report, err := plan.Apply(t.Context())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, `step gate: apply: wait for the moon: last seen: it is red\x1b[2J: not within 12s`)
		require.Equal(t, "gate.timeout", code.Of(err))
		require.Equal(t, bootstrap.NotRun, report.Results[1].Status)
		require.Equal(t, []time.Duration{0, 5 * time.Second, 10 * time.Second}, traced)
		require.Equal(t, 12*time.Second, time.Since(start))
	})
}

func TestRDY1_ALookThatHangsHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := 0
		g := gate.Gate{Name: "an answer", Timeout: 20 * time.Second,
			Probe: func(ctx context.Context) (string, error) {
				<-ctx.Done()
				return context.Cause(ctx).Error(), nil
			}}
		plan := bootstrap.Plan{
			Gates: []bootstrap.Step{{Name: "gate", Gate: g}},
			Trace: &bootstrap.Trace{Waiting: func(context.Context, string, string, time.Duration) { said++ }},
		}
		_, err := plan.Apply(t.Context())
		require.EqualError(t, err, "step gate: apply: wait for an answer: last seen: no answer: not within 20s")
		require.Equal(t, 4, said, "a look takes three seconds: after 3, 8, 13 and 18")
	})
}

func TestRDY1_AGateWithoutAnEndWaitsForAsLongAsItTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		g := gate.Gate{Name: "the tide", Timeout: -1, Probe: func(context.Context) (string, error) {
			if time.Since(start) < 6*time.Hour {
				return "it is low", nil
			}
			return "", nil
		}}
		plan := bootstrap.Plan{Gates: []bootstrap.Step{{Name: "gate", Gate: g}}, Trace: &bootstrap.Trace{
			Waiting: func(_ context.Context, _, _ string, atMost time.Duration) { require.Zero(t, atMost) },
		}}
		report, err := plan.Apply(t.Context())
		require.NoError(t, err)
		require.Equal(t, bootstrap.Changed, report.Results[0].Status)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start = time.Now()
		require.EqualError(t, g.Wait(ctx), "wait for the tide: last seen: it is low: context deadline exceeded")
	})
}

func TestRDY1_EachEndOfAGate(t *testing.T) {
	final := errors.New("never")
	g := gate.Gate{Name: "x", Probe: func(context.Context) (string, error) { return "", final }}
	require.ErrorIs(t, g.Wait(t.Context()), final)
	_, err := g.Check(t.Context())
	require.ErrorIs(t, err, final)

	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("told to end")
	g = gate.Gate{Name: "x", Probe: func(context.Context) (string, error) {
		cancel(reason)
		return "not yet", nil
	}}
	require.EqualError(t, g.Wait(ctx), "wait for x: last seen: not yet: told to end")
	require.ErrorIs(t, g.Wait(ctx), reason)

	for _, g := range []gate.Gate{{}, {Name: "x"}, {Probe: func(context.Context) (string, error) { return "", nil }}} {
		require.ErrorContains(t, g.Wait(t.Context()), "a gate needs a Name")
	}
}

// onceClosed returns a probe that calls f when it has first seen the gate closed.
func onceClosed(probe func(context.Context) (string, error), f func(seen string)) func(context.Context) (string, error) {
	var once sync.Once
	return func(ctx context.Context) (string, error) {
		seen, err := probe(ctx)
		if seen != "" {
			once.Do(func() { f(seen) })
		}
		return seen, err
	}
}

func TestRDY1_File(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ready")
	g := gate.File(path)
	changes, err := g.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"wait for the file " + path + ": it does not exist"}, changes)
	g.Probe = onceClosed(g.Probe, func(string) { require.NoError(t, os.WriteFile(path, nil, 0o600)) })
	require.NoError(t, g.Wait(t.Context()))
	changes, err = g.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, changes)
	require.ErrorContains(t, gate.File("ready").Wait(t.Context()), `"ready" is not an absolute path`)

	g = gate.File(filepath.Join(path, "below a file"))
	g.Timeout = time.Millisecond
	require.ErrorContains(t, g.Wait(t.Context()), "not a directory")
}

func TestRDY1_TCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	g := gate.TCP(address)
	changes, err := g.Check(t.Context())
	require.NoError(t, err)
	require.Len(t, changes, 1)
	require.Contains(t, changes[0], "wait for the TCP port "+address+": ")
	g.Probe = onceClosed(g.Probe, func(seen string) {
		require.Contains(t, seen, "refused")
		l, err = net.Listen("tcp", address)
		require.NoError(t, err)
	})
	require.NoError(t, g.Wait(t.Context()))
	require.NoError(t, l.Close())
	for _, address := range []string{"", "10.0.0.1", ":80", "10.0.0.1:"} {
		require.ErrorContains(t, gate.TCP(address).Wait(t.Context()), "want HOST:PORT")
	}
}
