// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/testns"
)

// placed is an action that declares where it makes something.
type placed struct {
	bootstrap.FuncAction
	places map[string]string
}

func (p placed) Places() map[string]string { return p.places }

// All methods of a Host act on one side.
func TestHost_EverythingIsOnTheHost(t *testing.T) {
	node := bootstraptest.NewNode(t)
	const made, lock, state = "/run/made-by-a-host", "/run/host-test.lock", "/run/host-test-state"
	host := hostns.Host{Proc: node.Proc(), LockFile: lock}
	require.NoError(t, host.Check())

	files := journal.Files{Kind: "acme"}
	action := bootstrap.Func(
		func(context.Context) ([]string, error) {
			if _, err := os.Stat(made); err == nil {
				return nil, nil
			}
			return []string{"make " + made}, nil
		},
		func(ctx context.Context) error { return files.MkdirAll(ctx, journal.From(ctx), made, 0o755) },
	).In("mnt")
	plan := bootstrap.Plan{
		Host:    host,
		Journal: &journal.Node{Dir: state, Agent: "agent", Owner: "pod", Handlers: []journal.Handler{files}},
		Steps:   []bootstrap.Step{{Name: "files", Action: recording{placed{action, map[string]string{made: ""}}}}},
	}
	_, err := plan.Apply(t.Context())
	require.NoError(t, err)
	onHost := func(path string) (err error) {
		require.NoFileExists(t, path)
		require.NoDirExists(t, path)
		return host.Do(t.Context(), hostns.Mount, func(context.Context) error {
			_, err := os.Stat(path)
			return err
		})
	}
	require.NoError(t, errors.Join(onHost(made), onHost(lock), onHost(state+"/agent.journal")))

	_, err = plan.RevertAll(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, onHost(made), os.ErrNotExist)
	require.ErrorIs(t, onHost(state), os.ErrNotExist)
	require.NoError(t, onHost(lock), "the lock stays")
}

// recording is an action that declares that it records files of acme's.
type recording struct{ placed }

func (recording) Kinds() []string { return journal.Files{Kind: "acme"}.Kinds() }

// A change that would not reach the host fails before it is made, unless Here is set.
func TestSEC10_AHostRefusesWhatWouldNotReachIt(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir := testns.TempDir(t)
	require.NoError(t, unix.Mount("private", dir, "tmpfs", 0, ""))
	lock := filepath.Join(t.TempDir(), "lock")
	for name, places := range map[string]map[string]string{
		"files":  {"/": "", dir: ""},
		"mounts": {filepath.Join(dir, "bpf"): "bpf"},
	} {
		host := hostns.Host{Remedy: "give --proc", LockFile: lock}
		refused := host.CheckPlaces(places)
		require.ErrorIs(t, refused, hostns.ErrNotHost, name)
		require.Equal(t, "host.not-host", code.Of(refused))
		require.ErrorContains(t, refused, dir, name)
		require.ErrorContains(t, refused, "(give --proc)", name)

		done := false
		action := bootstrap.Func(
			func(context.Context) ([]string, error) { return []string{"something"}, nil },
			func(context.Context) error { done = true; return nil },
		).In("mnt")
		plan := bootstrap.Plan{Host: host, Steps: []bootstrap.Step{{Name: name, Action: placed{action, places}, SkipVerify: true}}}
		for _, run := range []func(context.Context) (*bootstrap.Report, error){plan.Check, plan.Apply} {
			_, err := run(t.Context())
			require.ErrorIs(t, err, hostns.ErrNotHost, name)
			require.ErrorContains(t, err, "(give --proc)", name)
			require.False(t, done, name)
		}

		require.NoError(t, hostns.Host{Here: true}.CheckPlaces(places), "deliberate")
		require.NoError(t, hostns.Host{Proc: "/proc"}.CheckPlaces(places), "it is entered")
		plan.Host = hostns.Host{Here: true, LockFile: lock}
		_, err := plan.Apply(t.Context())
		require.NoError(t, err)
		require.True(t, done)
	}
}

func TestPLAN2_AHostSaysWhoHoldsItsLock(t *testing.T) {
	host := hostns.Host{LockFile: filepath.Join(t.TempDir(), "lock"), LockTimeout: 60 * time.Millisecond}
	unlock, err := host.Lock(t.Context(), "pod-1", nil)
	require.NoError(t, err)
	var told []string
	_, err = host.Lock(t.Context(), "pod-2", func(what string, atMost time.Duration) {
		require.LessOrEqual(t, atMost, host.LockTimeout)
		told = append(told, what)
	})
	require.ErrorIs(t, err, hostns.ErrLocked)
	require.ErrorContains(t, err, `owner "pod-1"`)
	require.Len(t, told, 1)
	require.Contains(t, told[0], "the lock "+host.LockFile+`, held by pid `)
	require.NoError(t, unlock())
	require.NoError(t, unlock(), "again")
	unlock, err = host.Lock(t.Context(), "", nil)
	require.NoError(t, err)
	require.NoError(t, unlock())
	require.FileExists(t, host.LockFile, "it is never removed")
}

func TestSEC10_AHostThatIsNone(t *testing.T) {
	require.NoError(t, hostns.Host{}.Check())
	require.ErrorIs(t, hostns.Host{Proc: "/nonexistent"}.Check(), os.ErrNotExist)
}
