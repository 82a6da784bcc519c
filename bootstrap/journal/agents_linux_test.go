// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/testns"
)

// An object on one container's side is not the other container's, whatever its path; an object
// on the host belongs to both.
func TestPLAN14_EachContainerHasItsOwnObjects(t *testing.T) {
	s := newShared(t)
	write := func(agent, content string) {
		t.Run(agent, func(t *testing.T) {
			host, err := os.Open("/proc/thread-self/ns/mnt")
			require.NoError(t, err)
			defer host.Close()
			testns.Enter(t, testns.Mount)
			enter := func(ctx context.Context, _ []string, f func(context.Context) error) error {
				own, err := os.Open("/proc/thread-self/ns/mnt")
				require.NoError(t, err)
				defer own.Close()
				require.NoError(t, unix.Setns(int(host.Fd()), unix.CLONE_NEWNS))
				defer func() { require.NoError(t, unix.Setns(int(own.Fd()), unix.CLONE_NEWNS)) }()
				return f(ctx)
			}
			j, err := (&journal.Node{Dir: s.dir, Agent: agent, NoOwner: true, Handlers: []journal.Handler{s.v}}).Open(t.Context(), enter)
			require.NoError(t, err)
			defer j.Close()
			e := journal.Entry{Kind: "acme/value", Object: "/tmp/config", Before: value("0"), After: value(content)}
			require.NoError(t, j.Begin(step(t, j, "config"), e))
			e.Identity = "thing /tmp/host"
			e.Object, e.After = "/tmp/host", value("1")
			require.NoError(t, j.Begin(step(t, j, "config"), e))
			all := entries(t, j)
			require.Equal(t, "of agent "+agent+": acme/value /tmp/config", all[0].Identity)
			require.Equal(t, "thing /tmp/host", all[1].Identity, "as the caller says")
		})
	}
	write("first", "1")
	write("second", "2")
}
