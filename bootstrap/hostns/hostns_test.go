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
		ns            []string
		want          string
	}{
		{"no directory", "", []string{"mnt"}, "no proc directory"},
		{"no kind", "/proc/1", nil, "enter namespaces of /proc/1: none named"},
		{"unknown kind", "/proc/1", []string{"mnt", "mount"}, `enter namespaces: there is no kind "mount"`},
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
	err := hostns.Do(ctx, "/does/not/exist", []string{"mnt"}, mustNotRun(t))
	require.ErrorIs(t, err, context.Canceled)
	require.EqualError(t, err, "enter mnt namespaces of /does/not/exist: context canceled")
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
	require.NoError(t, here.Do(t.Context(), []string{"mnt", "net", "cgroup", "uts", "ipc"}, count))
	require.NoError(t, here.Do(t.Context(), nil, count))
	require.NoError(t, hostns.Host{Proc: "/does/not/exist"}.Do(t.Context(), nil, count), "none is on this side")
	require.Equal(t, 3, called)
	for _, unknown := range []string{"mount", "pid", "user", "time", ""} {
		require.ErrorContains(t, here.Do(t.Context(), []string{"mnt", unknown}, mustNotRun(t)), fmt.Sprintf("there is no kind %q, or it cannot be entered", unknown))
	}
}
