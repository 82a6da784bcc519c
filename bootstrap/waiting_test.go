// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	gates "github.com/slipway-dev/slipway/bootstrap/gate"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// stderrOf returns what f writes to standard error, without the lock's holder.
func stderrOf(t *testing.T, f func()) []string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err)
	real := os.Stderr
	os.Stderr = file
	defer func() { os.Stderr = real }()
	f()
	text, err := os.ReadFile(file.Name())
	require.NoError(t, err)
	require.NoError(t, file.Close())
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

// hangs is an action that calls f in each call of the given name.
func hangs(in string, f func(context.Context)) *bootstraptest.Script {
	return &bootstraptest.Script{Changes: []string{"it"}, Hook: func(ctx context.Context, call string) error {
		if call == in {
			f(ctx)
		}
		return nil
	}}
}

// For each thing that a plan may wait for, whether or not it says so.
func TestPLAN20_WhatAPlanWaitsForLongerThanTenSecondsIsSaidOnStandardError(t *testing.T) {
	const long = 100 * time.Second
	sleep := func(context.Context) { time.Sleep(long) }
	never := gates.Gate{Name: "the moon", Timeout: -1, Probe: func(context.Context) (string, error) { return "it is \x1b[2Jnew", nil }}
	for name, tc := range map[string]struct {
		wait func(*bootstrap.Plan)
		said string
	}{
		"a step": {func(p *bootstrap.Plan) { p.Steps = []bootstrap.Step{step("a", hangs("apply", sleep))} }, "step a to end"},
		"a look": {func(p *bootstrap.Plan) { p.Steps = []bootstrap.Step{step("a", hangs("check", sleep))} }, "step a to end"},
		"an undoing": {func(p *bootstrap.Plan) {
			p.Steps = []bootstrap.Step{{Name: "a", Absent: true, Action: hangs("check-undo", sleep)}}
		}, "step a to end"},
		"a step's Prepare": {func(p *bootstrap.Plan) {
			p.Steps = []bootstrap.Step{{Name: "a", Prepare: func(ctx context.Context) (ledger.Wanter, error) { sleep(ctx); return nil, nil }}}
		}, "step a to end"},
		"Prepare": {func(p *bootstrap.Plan) {
			p.Prepare = func(ctx context.Context, _ *bootstrap.Plan) error { sleep(ctx); return nil }
		}, "the plan's Prepare to end"},
		"a gate":       {func(p *bootstrap.Plan) { p.Gates = []bootstrap.Step{gate("gate", never)} }, `the moon: it is \x1b[2Jnew`},
		"what it says": {func(p *bootstrap.Plan) { p.Steps = []bootstrap.Step{step("a", hangs("apply", aDevice(long)))} }, "a device"},
		"the node's lock": {func(p *bootstrap.Plan) {
			p.Steps, p.Host.LockTimeout = []bootstrap.Step{step("a", todo())}, long
			unlock, err := p.Host.Lock(t.Context(), "another")
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, unlock()) })
		}, "the lock "},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(t *testing.T, trace *bootstrap.Trace) (lines []string) {
				dir := t.TempDir()
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), long)
					defer cancel()
					p := on(node(filepath.Join(dir, "state"), "pod"))
					p.Host.LockFile, p.Trace = filepath.Join(dir, "lock"), trace
					tc.wait(p)
					lines = stderrOf(t, func() { _, _ = p.Apply(ctx) })
				})
				return lines
			}
			for traced, trace := range map[string]*bootstrap.Trace{
				"none": nil, "of other hooks": bootstrap.JoinTraces(&bootstrap.Trace{StepDone: func(context.Context, string, bootstrap.Result) {}}, nil),
				"of records": bootstrap.JoinTraces(&bootstrap.Trace{Records: true, Waiting: func(context.Context, string, string, time.Duration) {}}, nil),
			} {
				lines := run(t, trace)
				require.GreaterOrEqual(t, len(lines), 4, traced)
				for i, lasted := range []string{"10s", "20s", "40s", "1m20s"} {
					require.Contains(t, lines[i], "slipway: waiting for "+tc.said, traced)
					require.Contains(t, lines[i], "("+lasted+" so far", traced)
				}
			}
			var log bytes.Buffer
			require.Empty(t, run(t, bootstrap.LogTrace(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))), "it is logged")
			require.GreaterOrEqual(t, strings.Count(log.String(), "level=WARN msg=waiting for="), 9)
		})
	}
}

// aDevice waits for one, and never says that it has come.
func aDevice(long time.Duration) func(context.Context) {
	return func(ctx context.Context) {
		bootstrap.Waiting(ctx, "a device", 0)
		time.Sleep(long)
	}
}

// A wait of less is not said, nor one that has ended; and of several within each other only one is.
func TestPLAN20_AWaitIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := &bootstrap.Plan{Steps: []bootstrap.Step{
			step("short", hangs("apply", aDevice(9*time.Second))),
			step("ends", hangs("apply", func(ctx context.Context) {
				end := bootstrap.Waiting(ctx, "first", 12*time.Second)
				time.Sleep(11 * time.Second)
				end()
				end = bootstrap.Waiting(ctx, "second", 15*time.Second)
				time.Sleep(11 * time.Second)
				end()
				time.Sleep(9 * time.Second)
			})),
		}}
		require.Equal(t, []string{
			"slipway: waiting for first (10s so far, at most 2s more)",
			"slipway: waiting for second (10s so far, at most 5s more)",
			"slipway: waiting for step ends to end (30s so far)",
		}, stderrOf(t, func() { _, _ = plan.Apply(t.Context()) }))
	})
}

// following is a context that counts what waits for its end.
type following struct {
	context.Context
	followers int
}

func (f *following) Done() <-chan struct{} { return make(chan struct{}) }

func (f *following) AfterFunc(func()) (stop func() bool) {
	f.followers++
	return func() bool { f.followers--; return true }
}

// A program that waits again and again keeps nothing of the waits that have ended.
func TestPLAN20_AWaitThatHasEndedIsForgotten(t *testing.T) {
	ctx := &following{Context: t.Context()}
	bootstrap.Waiting(ctx, "the moon", 0)()
	require.Zero(t, ctx.followers)
}
