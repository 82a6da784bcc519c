// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
)

// remote is a source on another machine.
type remote struct {
	name string
	wait time.Duration // for the answer
	err  error
}

func (r remote) source() configresolve.Source {
	ref := configresolve.Ref{Kind: "remotes.example.org", Name: r.name}
	return configresolve.Source{Ref: ref, Read: func(ctx context.Context) ([]configresolve.Layer, error) {
		select {
		case <-time.After(r.wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return []configresolve.Layer{{Ref: ref, Values: values{"last": r.name, r.name: "1"}}}, r.err
	}}
}

func TestCFG9_RemoteSourcesWaitTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c, err := configresolve.Resolve(t.Context(),
			static("first", values{"last": "first"}),
			remote{name: "alone", wait: time.Minute}.source(),
			remote{name: "slow", wait: 3 * time.Second}.source(),
			static("local", values{"last": "local"}),
			configresolve.Optional(remote{name: "missing", wait: 2 * time.Second, err: configresolve.ErrMissing}.source()),
			configresolve.Optional(remote{name: "quick", wait: time.Second}.source()))
		require.NoError(t, err)
		require.Equal(t, time.Minute+3*time.Second, time.Since(start), "as long as the first, and the slowest of the others")
		require.Equal(t, values{"last": "quick", "alone": "1", "slow": "1", "quick": "1"}, all(c), "merged in order, whichever answers first")
		require.Equal(t, "remotes.example.org:alone", c.Explain().Sources[1].String())
		require.Len(t, c.Explain().Findings, 1)
		require.Equal(t, "missing", c.Explain().Findings[0].Problem)
	})
}

// If a server does not answer the first source, the others are not read.
func TestCFG9_TheFirstRemoteSourceGoesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("refused")
		_, err := configresolve.Resolve(t.Context(), static("local", nil),
			remote{name: "a", wait: time.Second, err: refused}.source(), spared(t), configresolve.Optional(spared(t)))
		require.ErrorIs(t, err, refused)
	})
}

// spared is a remote source that must not be read.
func spared(t *testing.T) configresolve.Source {
	source := remote{}.source()
	source.Read = func(context.Context) ([]configresolve.Layer, error) {
		t.Error("it is read")
		return nil, nil
	}
	return source
}

// The result is as if the sources were read in turn, whichever answers first, and no goroutine
// outlives it.
func TestCFG9_TheFirstErrorInOrderCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := errors.New("first"), errors.New("second")
		start := time.Now()
		_, err := configresolve.Resolve(t.Context(),
			remote{name: "well"}.source(),
			remote{name: "a", wait: 2 * time.Second, err: first}.source(),
			remote{name: "b", wait: time.Second, err: second}.source(),
			remote{name: "c", wait: time.Hour}.source())
		require.ErrorIs(t, err, first)
		require.NotErrorIs(t, err, second)
		require.ErrorContains(t, err, "remotes.example.org:a")
		require.Equal(t, 2*time.Second, time.Since(start), "the others are not waited for")
	})
}

// panicking is a local source that panics on the goroutine that reads it.
var panicking = configresolve.Source{Read: func(context.Context) ([]configresolve.Layer, error) { panic("read here") }}

// Local sources are read on the caller's goroutine: its thread may be locked in other namespaces.
func TestCFG9_LocalSourcesAreReadByTheCaller(t *testing.T) {
	require.PanicsWithValue(t, "read here", func() {
		_, err := configresolve.Resolve(t.Context(), remote{name: "a"}.source(), panicking, remote{name: "b"}.source())
		t.Error("no panic, but", err)
	})
}
