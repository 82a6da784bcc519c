// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cgroup_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/internal/fsmount/fsmounttest"
	"github.com/slipway-dev/slipway/internal/testledger"
	"github.com/slipway-dev/slipway/internal/testns"
)

// host is a process in mount and cgroup namespaces of its own, the latter rooted at
// a cgroup that is removed with the test. It is to its containers as pid 1 of a
// nested node.
func host(t *testing.T, n fsmounttest.Node) (procDir, cgroupDir string) {
	t.Helper()
	hierarchy := unified(t, n)
	cgroupDir = filepath.Join(hierarchy, "slipway-test-host-"+strconv.Itoa(os.Getpid()))
	require.NoError(t, os.Mkdir(cgroupDir, 0o755))
	t.Cleanup(func() { require.NoError(t, os.Remove(cgroupDir)) })
	return testns.Process(t, testns.Mount|testns.Cgroup, cgroupDir), cgroupDir
}

// inside is a mount whose methods are called in namespaces of another process.
type inside struct {
	procDir string
	ns      []string
	m       recorded
}

func (i inside) Apply(ctx context.Context) error { return hostns.Do(ctx, i.procDir, i.ns, i.m.Apply) }
func (i inside) Undo(ctx context.Context) error  { return hostns.Do(ctx, i.procDir, i.ns, i.m.Undo) }

func (i inside) Check(ctx context.Context) (changes []string, err error) {
	err = hostns.Do(ctx, i.procDir, i.ns, func(ctx context.Context) (err error) {
		changes, err = i.m.Check(ctx)
		return err
	})
	return changes, err
}

// A mount made from a container appears on the host with the host's root, not the
// container's.
func TestCG1_FromAContainer(t *testing.T) {
	for _, old := range []bool{false, true} {
		t.Run("old "+strconv.FormatBool(old), func(t *testing.T) {
			n := fsmounttest.NewReal(t, old)
			procDir, cgroupDir := host(t, n)
			path := filepath.Join(n.Dir(), "run", "cgroupv2")
			action := inside{procDir, []string{"mnt", "cgroup"}, record(t, cgroup.Mount{Path: path, Kernel: n.Kernel()})}

			require.NoError(t, action.Apply(t.Context()))
			require.Empty(t, testledger.Changes(t, action))
			require.Empty(t, n.Mounts(path), "the container does not see it")
			var want, got unix.Stat_t
			require.NoError(t, unix.Stat(cgroupDir, &want))
			require.NoError(t, unix.Stat(filepath.Join(procDir, "root", path), &got))
			require.Equal(t, []uint64{want.Dev, want.Ino}, []uint64{got.Dev, got.Ino})

			require.NoError(t, action.Undo(t.Context()))
			_, err := os.Stat(filepath.Join(procDir, "root", filepath.Dir(path)))
			require.ErrorIs(t, err, os.ErrNotExist)

			// With only the mount namespace entered, the mount has the container's
			// root, and the host reports it.
			half := inside{procDir, []string{"mnt"}, record(t, cgroup.Mount{Path: path, Kernel: n.Kernel()})}
			require.NoError(t, half.Apply(t.Context()))
			_, err = action.Check(t.Context())
			require.ErrorIs(t, err, cgroup.ErrNotRoot)
		})
	}
}
