// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
)

var _ bootstrap.CheckReverter = hostns.Wrapped{}

func TestNamespaceString(t *testing.T) {
	require.Equal(t, "none", hostns.Namespace(0).String())
	require.Equal(t, "mount", hostns.Mount.String())
	require.Equal(t, "cgroup|net|uts|ipc|mount", (hostns.Mount | hostns.Cgroup | hostns.Net | hostns.UTS | hostns.IPC).String())
	require.Equal(t, "net|0x80", (hostns.Net | 0x80).String())
}

func TestDoRefusesBadArguments(t *testing.T) {
	for _, c := range []struct {
		name, procDir string
		ns            hostns.Namespace
		want          string
	}{
		{"no directory", "", hostns.Mount, "no proc directory"},
		{"no kind", "/proc/1", 0, "enter namespaces of /proc/1: none named"},
		{"unknown kind", "/proc/1", hostns.Mount | 0x40, "enter namespaces of /proc/1: unknown kind 0x40"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := hostns.Do(t.Context(), c.procDir, c.ns, mustNotRun(t))
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestNS3_CancelledContextEntersNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := hostns.Do(ctx, "/does/not/exist", hostns.Mount, mustNotRun(t))
	require.ErrorIs(t, err, context.Canceled)
	require.EqualError(t, err, "enter mount namespaces of /does/not/exist: context canceled")
}

func mustNotRun(t *testing.T) func(context.Context) error {
	return func(context.Context) error {
		t.Error("the function was called")
		return nil
	}
}

// checkApply can be checked and applied, and no more.
type checkApply struct{ err error }

func (a checkApply) Check(context.Context) ([]string, error) { return []string{"do it"}, a.err }
func (a checkApply) Apply(context.Context) error             { return a.err }

func TestNS6_RevertOverActionWithoutOne(t *testing.T) {
	w := hostns.In("/does/not/exist/1", hostns.Mount, checkApply{})
	require.ErrorIs(t, w.Revert(t.Context()), errors.ErrUnsupported)
	changes, err := w.CheckRevert(t.Context())
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.Empty(t, changes)
	require.ErrorContains(t, err, "hostns_test.checkApply")
	advice, err := w.Advise(t.Context())
	require.NoError(t, err, "it has nothing to say")
	require.Empty(t, advice)
}
