// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/cniinstall"
)

// Files that other programs still have to install are waited for; other faults are not.
func TestCNI2_WhatOthersHaveToBring(t *testing.T) {
	const theirs = `{"cniVersion":"0.3.1","name":"other","plugins":[{"type":"late-cni"}]}`
	n := newNode(t)
	i := n.install()
	i.Config = chainedOf(cniinstall.Chained{Target: "other"})
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

// A plugin found nowhere fails the plan before the first step changes anything; a plugin that
// an earlier step installs into a searched folder does not.
func TestPLAN17_APluginThatNoStepBringsFailsBeforeTheFirstChange(t *testing.T) {
	n := newNode(t)
	i := n.install()
	i.Plugins, i.Optional = nil, []string{"loopback"}
	i.SearchDirs = []string{filepath.Join(n.root, "opt/provider")}
	provider := cniinstall.Install{Plugins: n.install().Plugins, BinDir: filepath.Join(n.root, "opt/elsewhere")}
	plan := func() *bootstrap.Plan {
		return &bootstrap.Plan{
			Host: hostns.Host{Here: true, LockFile: filepath.Join(n.root, "lock")},
			Steps: []bootstrap.Step{
				{Name: "run", Action: hostpath.Paths{List: []hostpath.Path{{Path: filepath.Join(n.root, "run/cilium"), Type: hostpath.DirectoryOrCreate}}}},
				{Name: "provider", Action: provider},
				{Name: "cni", Wants: i.Install, After: []string{"run", "provider"}},
			},
		}
	}
	require.NoError(t, os.MkdirAll(filepath.Join(n.root, "run"), 0o755))
	before := tree(t, n.root)
	_, err := plan().Apply(t.Context())
	require.ErrorIs(t, err, cniinstall.ErrPluginMissing)
	require.ErrorAs(t, err, new(bootstrap.MissingError))
	require.Equal(t, "cni.plugin-missing", bootstrap.Code(err))
	require.Equal(t, before, tree(t, n.root))

	provider.BinDir = i.SearchDirs[0]
	report, err := plan().Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, bootstrap.Unknown, report.Results[2].Status)
	_, err = plan().Apply(t.Context())
	require.NoError(t, err)
	report, err = plan().Apply(t.Context())
	require.NoError(t, err)
	require.False(t, report.Changed())

	i.Config, i.ConfName = chainedOf(cniinstall.Chained{Target: "nobody's"}), "04-chained.conflist"
	require.NoError(t, os.RemoveAll(filepath.Join(n.root, "run/cilium")))
	before = tree(t, n.root)
	_, err = plan().Apply(t.Context())
	require.ErrorIs(t, err, cniinstall.ErrTargetMissing)
	require.Equal(t, before, tree(t, n.root))
}
