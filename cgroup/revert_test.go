// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cgroup_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/internal/fsmount/fsmounttest"
	"github.com/slipway-dev/slipway/mount"
)

// racing is a kernel on which another process mounts just before.
type racing struct {
	mount.Mounter
	n fsmounttest.Node
}

func (k racing) Mount(source, target, fstype, options string) error {
	k.n.Put(target, fstype, "")
	return k.Mounter.Mount(source, target, fstype, options)
}

func TestCG2_AnotherProcessIsFirst(t *testing.T) {
	onEach(t, func(t *testing.T, n fsmounttest.Node) {
		m := record(t, cgroup.Mount{
			Path: fsmounttest.Mkdir(t, n, "cgroupv2"), Kernel: racing{fsmount.Or(n.Kernel()), n},
		})
		require.NoError(t, m.Apply(t.Context()))
		require.Equal(t, []string{"cgroup2"}, n.Mounts(m.mount.Path))
		require.NoError(t, m.Undo(t.Context()), "it is not ours")
		require.Empty(t, m.Records(t))
		require.Equal(t, []string{"cgroup2"}, n.Mounts(m.mount.Path))
	})
}
