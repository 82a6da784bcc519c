// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/sysctl"
)

func (n node) revertAll() error {
	return n.book("none").revertAll(n.t.Context())
}

// unreadable fails to read a key once another was written.
type unreadable struct {
	*bootstraptest.Kernel
	key, after string
	written    bool
}

func (u *unreadable) WriteFile(name string, value []byte) error {
	u.written = u.written || name == u.after
	return u.Kernel.WriteFile(name, value)
}

func (u *unreadable) ReadFile(name string) ([]byte, error) {
	if u.written && name == u.key {
		return nil, &fs.PathError{Op: "read", Path: name, Err: syscall.EIO}
	}
	return u.Kernel.ReadFile(name)
}

func TestPLAN6_AReadThatFailsDropsAndCompletesNothing(t *testing.T) {
	const forward, filter, dragged = "net/ipv4/ip_forward", "net/ipv4/conf/eth0/rp_filter", "net/ipv4/conf/eth0/forwarding"
	for key, after := range map[string]string{filter: filter, forward: forward, dragged: forward} {
		for _, mayFail := range []bool{false, true} {
			n := newNode(t, "eth0")
			before := n.Values()
			d := n.dropIn()
			d.Settings = []sysctl.Setting{
				{Key: filter, Value: "2", IgnoreFailure: mayFail},
				{Key: forward, Value: "1", IgnoreFailure: mayFail},
			}
			d.Kernel.Files = &unreadable{Kernel: n.Kernel, key: key, after: after}
			d.book = book{opened(t, n.state(), "agent", n.Kernel, d.Kernel.Files, n.dir()), "values"}
			require.ErrorIs(t, d.Apply(t.Context()), syscall.EIO, key)
			require.ErrorIs(t, d.Revert(t.Context()), syscall.EIO, key)
			require.NoError(t, n.revertAll(), "it stays recorded")
			require.Equal(t, before, n.Values(), key)
			require.NoDirExists(t, n.state())
		}
	}
}
