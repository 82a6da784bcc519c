// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package process_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/process"
)

func start(t *testing.T, script string) *process.Process {
	t.Helper()
	p, err := process.Start("server", exec.Command("sh", "-c", script), filepath.Join(t.TempDir(), "log"), nil)
	require.NoError(t, err)
	t.Cleanup(func() { p.End(syscall.SIGKILL) })
	return p
}

// says returns a function that reports whether the process has printed what.
func says(p *process.Process, what string) func(context.Context) error {
	return func(context.Context) error {
		if !strings.Contains(p.Log(), what) {
			return errors.New("not said")
		}
		return nil
	}
}

func TestAProcessIsWaitedForAndEnded(t *testing.T) {
	p := start(t, "trap 'echo ending; exit 3' TERM; echo ready; while :; do sleep 0.01; done")
	require.NoError(t, process.Until(t.Context(), "it is ready", says(p, "ready"), p))
	p.End(syscall.SIGTERM)
	p.End(syscall.SIGTERM)
	require.ErrorContains(t, p.Wait(), "exit status 3")
	require.Equal(t, "ready\nending\n", p.Log())
	(*process.Process)(nil).End(os.Kill)
}

func TestAProcessThatEndsIsNotWaitedFor(t *testing.T) {
	p := start(t, "echo no such flag >&2; exit 1")
	err := process.Until(t.Context(), "it is ready", says(p, "ready"), p)
	require.EqualError(t, err, "waited in vain until it is ready: server has ended: server said last: no such flag")
}

func TestWhatDoesNotComeIsWaitedForInVain(t *testing.T) {
	p := start(t, "echo starting; exec sleep 1000")
	ctx, cancel := context.WithCancel(t.Context())
	err := process.Until(ctx, "it is ready", func(context.Context) error {
		if says(p, "starting")(ctx) == nil {
			cancel()
		}
		return errors.New("not ready")
	}, p)
	require.EqualError(t, err, "waited in vain until it is ready: not ready\nserver said last: starting")
}

func TestCPU(t *testing.T) {
	p := start(t, "while :; do :; done")
	require.NoError(t, process.Until(t.Context(), "it has worked", func(context.Context) error {
		used, err := p.CPU()
		if err == nil && used < 10*time.Millisecond {
			err = errors.New(used.String())
		}
		return err
	}, p))
}

func TestOutputIsInTheErrorToo(t *testing.T) {
	out, err := process.Output(exec.Command("sh", "-c", "echo out; echo err >&2; exit 2"), nil)
	require.Equal(t, "out\nerr\n", out)
	require.ErrorContains(t, err, "exit status 2: out\nerr")
	require.ErrorAs(t, err, new(*exec.ExitError))
	_, err = process.Output(exec.Command("/no/such/program"), nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}
