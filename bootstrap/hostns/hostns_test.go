// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/hostns"
)

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

func TestEnterNamesNamespacesAsTheirFilesAre(t *testing.T) {
	here := hostns.Host{}
	called := 0
	count := func(context.Context) error { called++; return nil }
	require.NoError(t, here.Enter(t.Context(), []string{"mnt", "net", "cgroup", "uts", "ipc"}, count))
	require.NoError(t, here.Enter(t.Context(), nil, count))
	require.NoError(t, hostns.Host{Proc: "/does/not/exist"}.Enter(t.Context(), nil, count), "none is on this side")
	require.Equal(t, 3, called)
	for _, unknown := range []string{"mount", "pid", "user", "time", ""} {
		require.ErrorContains(t, here.Enter(t.Context(), []string{"mnt", unknown}, mustNotRun(t)), fmt.Sprintf("there is no kind %q, or it cannot be entered", unknown))
	}
}
