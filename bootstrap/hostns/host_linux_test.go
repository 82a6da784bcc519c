// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/waiting"
)

// placed wants objects at places, which are as wanted once they were written.
type placed struct {
	places map[string]string
	done   bool
}

func (p *placed) Wants(context.Context) (wants ledger.Wants, err error) {
	present := func() ledger.State {
		if !p.done {
			return ledger.State{}
		}
		return ledger.State{Type: "there"}
	}
	for path := range p.places {
		wants.List = append(wants.List, ledger.Want{Object: path, To: ledger.State{Type: "there"}, Kind: &ledger.Kind{
			Name:  "placed",
			Read:  func(context.Context, string) (ledger.State, error) { return present(), nil },
			Write: func(context.Context, string, ledger.State) error { p.done = true; return nil },
			Place: func(object string) (path, fstype string) { return object, p.places[object] },
		}})
	}
	return wants, nil
}

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
		host := hostns.Host{LockFile: lock}
		refused := host.CheckPlaces(places)
		require.ErrorIs(t, refused, hostns.ErrNotHost, name)
		require.Equal(t, "host.not-host", code.Of(refused))
		require.ErrorContains(t, refused, dir, name)

		want := &placed{places: places}
		plan := bootstrap.Plan{Host: host, Steps: []bootstrap.Step{{Name: name, Wants: want}}}
		for _, run := range []func(context.Context) (*bootstrap.Report, error){plan.Check, plan.Apply} {
			_, err := run(t.Context())
			require.ErrorIs(t, err, hostns.ErrNotHost, name)
			require.False(t, want.done, name)
		}

		require.NoError(t, hostns.Host{Here: true}.CheckPlaces(places), "deliberate")
		require.NoError(t, hostns.Host{Proc: "/proc"}.CheckPlaces(places), "it is entered")
		plan.Host = hostns.Host{Here: true, LockFile: lock}
		_, err := plan.Apply(t.Context())
		require.NoError(t, err)
		require.True(t, want.done)
	}
}

func TestPLAN2_AHostSaysWhoHoldsItsLock(t *testing.T) {
	host := hostns.Host{LockFile: filepath.Join(t.TempDir(), "lock"), LockTimeout: 60 * time.Millisecond}
	unlock, err := host.Lock(t.Context(), "pod-1")
	require.NoError(t, err)
	var said []string
	ctx := waiting.With(t.Context(), func(_ context.Context, what string, _ time.Duration) { said = append(said, what) }, false)
	_, err = host.Lock(ctx, "pod-2")
	require.ErrorIs(t, err, hostns.ErrLocked)
	require.ErrorContains(t, err, `owner "pod-1"`)
	require.Len(t, said, 1)
	require.Contains(t, said[0], "the lock "+host.LockFile+`, held by pid `)
	require.NoError(t, unlock())
	require.NoError(t, unlock(), "again")
	unlock, err = host.Lock(t.Context(), "")
	require.NoError(t, err)
	require.NoError(t, unlock())
	require.FileExists(t, host.LockFile, "it is never removed")
}

func TestSEC10_AHostThatIsNone(t *testing.T) {
	require.NoError(t, hostns.Host{}.Check())
	require.ErrorIs(t, hostns.Host{Proc: "/nonexistent"}.Check(), os.ErrNotExist)
}
