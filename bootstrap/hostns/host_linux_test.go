// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/flock"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/testns"
)

// All of a Host acts on one side.
func TestHost_EverythingIsOnTheHost(t *testing.T) {
	node := bootstraptest.NewNode(t)
	host := hostns.Host{Proc: node.Proc()}
	require.NoError(t, host.Check())

	const made = "/run/made-by-a-host"
	action := bootstrap.Func(
		func(context.Context) ([]string, error) {
			if _, err := os.Stat(made); err == nil {
				return nil, nil
			}
			return []string{"make " + made}, nil
		},
		func(context.Context) error { return os.Mkdir(made, 0o755) },
	)
	plan := bootstrap.Plan{
		Lock:  host.Lock(flock.File{Path: "/run/host-test.lock"}.Lock),
		Steps: []bootstrap.Step{{Name: "files", Action: host.Files(hostns.Mount, action, made)}},
	}
	_, err := plan.Apply(t.Context())
	require.NoError(t, err)
	require.NoDirExists(t, made)
	require.NoFileExists(t, "/run/host-test.lock")
	require.NoError(t, host.Do(t.Context(), hostns.Mount, func(context.Context) error {
		_, lockErr := os.Stat("/run/host-test.lock")
		_, err := os.Stat(made)
		return errors.Join(err, lockErr)
	}))
}

// What would not reach the host fails before it is done, unless that is meant.
func TestSEC10_AHostRefusesWhatWouldNotReachIt(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir := testns.TempDir(t)
	require.NoError(t, unix.Mount("private", dir, "tmpfs", 0, ""))
	done := false
	action := bootstrap.Func(
		func(context.Context) ([]string, error) { return []string{"something"}, nil },
		func(context.Context) error { done = true; return nil },
	)
	host := hostns.Host{Remedy: "give --proc"}
	for name, refused := range map[string]hostns.Action{
		"files":  host.Files(hostns.Mount, action, "/", dir),
		"mounts": host.Mounts(hostns.Mount, action, "bpf", filepath.Join(dir, "bpf")),
	} {
		_, err := refused.Check(t.Context())
		require.ErrorIs(t, err, hostns.ErrNotHost, name)
		require.Equal(t, "host.not-host", code.Of(err))
		require.ErrorContains(t, err, dir, name)
		require.ErrorContains(t, err, "(give --proc)", name)
		require.ErrorIs(t, refused.Apply(t.Context()), hostns.ErrNotHost, name)
		require.False(t, done, name)
	}
	host.Here = true
	require.NoError(t, host.Files(hostns.Mount, action, dir).Apply(t.Context()))
	require.True(t, done)
}

func TestSEC10_AHostThatIsNone(t *testing.T) {
	require.NoError(t, hostns.Host{}.Check())
	require.ErrorIs(t, hostns.Host{Proc: "/nonexistent"}.Check(), os.ErrNotExist)
}
