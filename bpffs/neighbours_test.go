// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpffs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/sysctl"
)

// A mount used by two agents is removed with the last of them, whichever that is.
func TestPLAN14_AMountOfTwoAgents(t *testing.T) {
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		k := bootstraptest.NewKernel()
		dir := filepath.Join(t.TempDir(), "state")
		var plans []*bootstrap.Plan
		for _, agent := range []string{"first", "second"} {
			plans = append(plans, &bootstrap.Plan{
				Host:    hostns.Host{LockFile: filepath.Join(t.TempDir(), "lock")},
				Journal: &journal.Node{Dir: dir, Agent: agent, NoOwner: true, Handlers: []journal.Handler{bpffs.Handler{Kernel: k}}},
				Steps:   []bootstrap.Step{{Name: "bpffs", Action: bpffs.Mount{Path: "/sys/fs/bpf", Kernel: k}}},
			})
		}
		for i, want := range []string{"mount bpf on /sys/fs/bpf", `keep /sys/fs/bpf also for this agent: agent "first" has made it`} {
			report, err := plans[i].Apply(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{want}, report.Results[0].Changes)
			report, err = plans[i].Apply(t.Context())
			require.NoError(t, err)
			require.Equal(t, bootstrap.Unchanged, report.Results[0].Status)
		}
		mounted := func() string {
			path, err := bpffs.Mount{Path: "/sys/fs/bpf", Kernel: k}.Mounted(t.Context())
			require.NoError(t, err)
			return path
		}
		_, err := plans[order[0]].RevertAll(t.Context())
		require.NoError(t, err)
		require.Equal(t, "/sys/fs/bpf", mounted())
		_, err = plans[order[1]].RevertAll(t.Context())
		require.NoError(t, err)
		require.Empty(t, mounted())
		require.NoDirExists(t, dir)
	}
}

// A conflict is found before anything is changed, whatever the earlier steps are.
func TestPLAN17_AConflictIsFoundBeforeTheFirstChange(t *testing.T) {
	k := bootstraptest.NewKernel("eth0")
	dir := filepath.Join(t.TempDir(), "state")
	setting := func(value string) bootstrap.Action {
		return sysctl.Settings{Values: []sysctl.Setting{{Key: "net.ipv4.conf.eth0.rp_filter", Value: value}}, Kernel: sysctl.Kernel{Files: k}}
	}
	plan := func(agent string, steps ...bootstrap.Step) *bootstrap.Plan {
		return &bootstrap.Plan{
			Host: hostns.Host{LockFile: filepath.Join(t.TempDir(), "lock")},
			Journal: &journal.Node{Dir: dir, Agent: agent, NoOwner: true, Handlers: []journal.Handler{
				bpffs.Handler{Kernel: k}, sysctl.Handler{Kernel: sysctl.Kernel{Files: k}},
			}},
			Steps: steps,
		}
	}
	_, err := plan("first", bootstrap.Step{Name: "sysctl", Action: setting("2")}).Apply(t.Context())
	require.NoError(t, err)
	report, err := plan("second",
		bootstrap.Step{Name: "bpffs", Action: bpffs.Mount{Path: "/sys/fs/bpf", Kernel: k}},
		bootstrap.Step{Name: "sysctl", Action: setting("1"), After: []string{"bpffs"}},
	).Apply(t.Context())
	require.ErrorIs(t, err, journal.ErrConflict)
	require.Equal(t, bootstrap.NotRun, report.Results[0].Status)
	path, err := bpffs.Mount{Path: "/sys/fs/bpf", Kernel: k}.Mounted(t.Context())
	require.NoError(t, err)
	require.Empty(t, path)
}

// So is the directory that the first agent has made for it.
func TestPLAN14_TheDirectoryUnderAMountOfTwoAgents(t *testing.T) {
	k, root := bootstraptest.NewKernel(), t.TempDir()
	path := filepath.Join(root, "run", "bpf")
	first, second := mounting(t, root, "first", path, k), mounting(t, root, "second", path, k)
	for _, plan := range []*bootstrap.Plan{first, second} {
		_, err := plan.Apply(t.Context())
		require.NoError(t, err)
	}
	_, err := first.RevertAll(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"bpf"}, k.Mounts(path))
	require.NoFileExists(t, filepath.Join(root, "state", "first.journal"))
	_, err = second.RevertAll(t.Context())
	require.NoError(t, err)
	require.NoDirExists(t, filepath.Join(root, "run"))
	require.NoDirExists(t, filepath.Join(root, "state"))
}

// An agent is killed before a mount, and another agent makes it. After that one is
// gone, the mount is still known as an agent's.
func TestPLAN14_AMountThatAKilledAgentWasAboutToMake(t *testing.T) {
	k, root := bootstraptest.NewKernel(), t.TempDir()
	path := filepath.Join(root, "bpf")
	first, second := mounting(t, root, "first", path, k), mounting(t, root, "second", path, k)
	j, err := first.Journal.(*journal.Node).Open(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, journal.Files{Kind: "bpffs"}.MkdirAll(t.Context(), j.Step("bpffs"), path, 0o755))
	require.NoError(t, j.Step("bpffs").Begin(t.Context(), journal.Entry{
		Kind: "bpffs/mount", Object: path, Boot: j.Boot(), After: journal.State{Type: "mount", Value: "slipway-first"},
	}))
	require.NoError(t, j.Close())
	_, err = second.Apply(t.Context())
	require.NoError(t, err)
	_, err = second.RevertAll(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"bpf"}, k.Mounts(path), "the first agent wants it")
	_, err = first.RevertAll(t.Context())
	require.NoError(t, err)
	require.Empty(t, k.Mounts(path))
	require.NoDirExists(t, path)
	require.NoDirExists(t, filepath.Join(root, "state"))
}

// An agent that returns to a mount which it had left to another recognizes it as
// its own, although it is not the mount that the other agent had made before.
func TestPLAN14_AMountThatIsMadeAnewAndLeft(t *testing.T) {
	k, root := bootstraptest.NewKernel(), t.TempDir()
	path := filepath.Join(root, "bpf")
	first, second := mounting(t, root, "first", path, k), mounting(t, root, "second", path, k)
	_, err := first.Apply(t.Context())
	require.NoError(t, err)
	require.NoError(t, k.Unmount(path), "as by an uninstall that is then killed")
	_, err = second.Apply(t.Context())
	require.NoError(t, err)
	_, err = second.RevertAll(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"bpf"}, k.Mounts(path), "the first agent may want it")
	second = mounting(t, root, "second", path, k)
	_, err = second.Apply(t.Context())
	require.NoError(t, err)
	_, err = first.RevertAll(t.Context())
	require.NoError(t, err)
	_, err = second.RevertAll(t.Context())
	require.NoError(t, err)
	require.Empty(t, k.Mounts(path))
	require.NoDirExists(t, filepath.Join(root, "state"))
}

// A directory that the agent mounted on but did not make stays, and so does its
// parent, which the agent made.
func TestPLAN14_AMountOnADirectoryOfAnother(t *testing.T) {
	k, root := bootstraptest.NewKernel(), t.TempDir()
	path := filepath.Join(root, "run", "bpf")
	plan := mounting(t, root, "agent", path, k)
	j, err := plan.Journal.(*journal.Node).Open(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, journal.Files{Kind: "bpffs"}.MkdirAll(t.Context(), j.Step("bpffs"), filepath.Dir(path), 0o755))
	require.NoError(t, j.Close())
	require.NoError(t, os.Mkdir(path, 0o755))
	_, err = plan.Apply(t.Context())
	require.NoError(t, err)
	_, err = plan.RevertAll(t.Context())
	require.ErrorIs(t, err, journal.ErrChanged)
	require.ErrorContains(t, err, "is kept: it holds bpf")
	require.Empty(t, k.Mounts(path))
}

// mounting returns the plan of an agent that wants a bpffs on a path.
func mounting(t *testing.T, root, agent, path string, k *bootstraptest.Kernel) *bootstrap.Plan {
	return &bootstrap.Plan{
		Host:    hostns.Host{LockFile: filepath.Join(t.TempDir(), "lock")},
		Journal: &journal.Node{Dir: filepath.Join(root, "state"), Agent: agent, NoOwner: true, Handlers: []journal.Handler{bpffs.Handler{Kernel: k}}},
		Steps:   []bootstrap.Step{{Name: "bpffs", Action: bpffs.Mount{Path: path, Kernel: k}}},
	}
}
