// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cniinstall"
)

// Files that other programs still have to install are waited for; other faults are not.
func TestCNI2_OnlyFilesOfOtherProgramsAreWaitedFor(t *testing.T) {
	const theirs = `{"cniVersion":"0.3.1","name":"other","plugins":[{"type":"late-cni"}]}`
	n := newNode(t)
	i := n.install()
	i.Config = chainedOf(cniinstall.Chained{Network: "other"})
	other, late := n.conf+"/10-other.conflist", n.plugin("late-cni")
	missing := func(i recorded) string {
		t.Helper()
		before := tree(t, n.root)
		seen, err := i.Missing(t.Context())
		require.NoError(t, err)
		require.Equal(t, before, tree(t, n.root))
		return seen
	}
	require.Contains(t, missing(i), cniinstall.ErrTargetMissing.Error())
	write(t, other, theirs, 0o644)
	seen := missing(i)
	require.Contains(t, seen, cniinstall.ErrPluginMissing.Error())
	require.Contains(t, seen, "late-cni")
	write(t, late, script("0.3.1", "1.0.0"), 0o755)
	require.Empty(t, missing(i))
	require.NoError(t, i.Apply(t.Context()))
	require.Empty(t, missing(i), "it is installed")

	invalid := i
	invalid.Config = cniinstall.Whole("{")
	require.Empty(t, missing(invalid), "the step reports it")
	unnamed := i
	unnamed.ConfName = ""
	require.Empty(t, missing(unnamed), "the step reports it")

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	seen, err := i.Missing(ended)
	require.NoError(t, err)
	require.Contains(t, seen, context.Canceled.Error(), "a cancelled check reports the cancellation")
}

// A plugin that the image lacks fails the plan before the first step changes anything. One that
// an earlier step installs does not, and a network that is not there stops only its own step.
func TestPLAN17_APluginThatTheImageLacksFailsBeforeTheFirstChange(t *testing.T) {
	n := newNode(t)
	i := n.install().Install
	provider := cniinstall.Install{Plugins: i.Plugins, BinDir: filepath.Join(n.root, "opt/provider")}
	plan := func() *bootstrap.Plan {
		return n.planOf(cniinstall.Uninstall{},
			bootstrap.Step{Name: "provider", Wants: provider}, bootstrap.Step{Name: "cni", Wants: i, After: []string{"provider"}})
	}
	i.Names = []string{"cilium-cni", "lacking"}
	_, err := plan().Apply(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoDirExists(t, n.root+"/opt")
	require.NoDirExists(t, n.root+"/etc")

	i.Names, i.Plugins, i.Optional = nil, nil, []string{"loopback"}
	i = n.seeing(i, provider.BinDir)
	report, err := plan().Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, bootstrap.Unknown, report.Results[1].Status)
	_, err = plan().Apply(t.Context())
	require.NoError(t, err)
	report, err = plan().Apply(t.Context())
	require.NoError(t, err)
	require.False(t, report.Changed())

	require.NoError(t, os.RemoveAll(provider.BinDir))
	provider.BinDir = filepath.Join(n.root, "opt/elsewhere")
	require.NoError(t, os.Chmod(n.confFile(), 0o644))
	_, err = plan().Apply(t.Context())
	require.ErrorIs(t, err, cniinstall.ErrPluginMissing)
	require.Equal(t, "cni.plugin-missing", bootstrap.Code(err))
	requireContent(t, n.confFile(), agentConf, 0o644)

	provider.BinDir, i.Config = filepath.Join(n.root, "opt/third"), chainedOf(cniinstall.Chained{Network: "nobody's"})
	_, err = plan().Apply(t.Context())
	require.ErrorIs(t, err, cniinstall.ErrTargetMissing)
	require.ErrorIs(t, err, ledger.ErrMissing)
	require.Equal(t, "cni.target-missing", bootstrap.Code(err))
	require.DirExists(t, provider.BinDir)
	requireContent(t, n.confFile(), agentConf, 0o644)
}
