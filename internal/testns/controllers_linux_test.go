// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package testns_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/mountinfo"
	"github.com/slipway-dev/slipway/internal/testns"
)

// v1 are the mount points of the machine's hierarchies of version 1.
func v1(t *testing.T) (points []string) {
	t.Helper()
	mounts, err := mountinfo.Read()
	require.NoError(t, err)
	for _, m := range mounts {
		if m.FSType == "cgroup" {
			points = append(points, m.Point)
		}
	}
	return points
}

func TestANodeHasACgroupInEachHierarchy(t *testing.T) {
	testns.Root(t)
	points := v1(t)
	if len(points) == 0 {
		testns.SkipKernel(t, "hierarchy of cgroup version 1")
	}
	n, err := testns.StartNode(t.Context(), testns.NodeOptions{Controllers: true})
	require.NoError(t, err)
	defer n.Close()

	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "cut", "-d:", "-f3", "/proc/self/cgroup")
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, n.StartCommand(cmd))
	require.NoError(t, cmd.Wait(), out.String())
	require.Equal(t, []string{"/"}, slices.Compact(strings.Fields(out.String())), "a program on the node is in its cgroups")

	name := filepath.Base(cgroupOf(t, n))
	require.NoError(t, n.Do(t.Context(), func(context.Context) error {
		require.DirExists(t, "/sys/fs/cgroup/unified")
		for _, point := range points {
			require.NoError(t, os.MkdirAll(filepath.Join("/sys/fs/cgroup", filepath.Base(point), "below"), 0o755))
		}
		return nil
	}))
	for _, point := range points {
		require.DirExists(t, filepath.Join(point, name, "below"))
	}
	require.NoError(t, n.Close())
	for _, point := range points {
		require.NoDirExists(t, filepath.Join(point, name))
	}
}

func TestStartSweepsTheCgroupsOfTheDead(t *testing.T) {
	n := start(t)
	live := cgroupOf(t, n)
	var dead []string
	for _, point := range append(v1(t), filepath.Dir(live)) {
		dead = append(dead, filepath.Join(point, "slipway-node-gone"))
	}
	for _, point := range v1(t) {
		dead = append(dead, filepath.Join(point, "slipway-node-half-gone"))
	}
	for _, dir := range dead {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "below"), 0o700))
	}
	start(t)
	for _, dir := range dead {
		require.NoDirExists(t, dir)
	}
	require.DirExists(t, live)
}

// A machine with version 2 alone gives cgroups below its root controllers if systemd or a
// kubelet runs there.
func TestANodeOfAUnifiedMachineHasControllers(t *testing.T) {
	testns.Root(t)
	if len(v1(t)) > 0 {
		testns.SkipKernel(t, "hierarchy of cgroup version 2 alone")
	}
	const root = "/sys/fs/cgroup"
	before, err := os.ReadFile(root + "/cgroup.subtree_control")
	require.NoError(t, err)
	n, err := testns.StartNode(t.Context(), testns.NodeOptions{Controllers: true})
	if len(strings.Fields(string(before))) == 0 {
		require.ErrorIs(t, err, errors.ErrUnsupported)
		require.NoError(t, os.WriteFile(root+"/cgroup.subtree_control", []byte("+memory"), 0))
		t.Cleanup(func() { require.NoError(t, os.WriteFile(root+"/cgroup.subtree_control", []byte("-memory"), 0)) })
		n, err = testns.StartNode(t.Context(), testns.NodeOptions{Controllers: true})
	}
	require.NoError(t, err)
	defer n.Close()
	path := cgroupOf(t, n)
	require.Equal(t, "init", filepath.Base(path))

	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", "cut -d: -f3 /proc/self/cgroup; cd /sys/fs/cgroup; mkdir limited; echo 50M > limited/memory.max; cat limited/memory.max")
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, n.StartCommand(cmd))
	require.NoError(t, cmd.Wait(), out.String())
	require.Equal(t, "/init\n52428800\n", out.String())
	require.NoError(t, n.Close())
	require.NoDirExists(t, filepath.Dir(path))
}
