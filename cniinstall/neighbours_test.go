// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cniinstall"
)

// agent is one of several agents on a node: it installs its own plugin, some version of
// portmap, and a configuration that names both.
func (n node) agent(name, portmap string, change func(*cniinstall.Install, *ledger.Ledger)) *bootstrap.Plan {
	own := name + "-cni"
	i := cniinstall.Install{
		Plugins: fstest.MapFS{own: {Data: []byte(script("1.0.0"))}, "portmap": {Data: []byte(script("1.0.0") + portmap)}},
		BinDir:  n.bin, ConfDir: n.conf, ConfName: "10-" + name + ".conflist",
		Config:   cniinstall.Whole(`{"cniVersion":"1.0.0","name":"` + name + `","plugins":[{"type":"` + own + `"},{"type":"portmap"}]}`),
		Optional: []string{"loopback"},
	}
	l := &ledger.Ledger{Dir: n.state, Agent: name, NoOwner: true, Kinds: cniinstall.Uninstall{ConfDir: n.conf}.Kinds()}
	if change != nil {
		change(&i, l)
	}
	return &bootstrap.Plan{
		Host: hostns.Host{Here: true, LockFile: filepath.Join(n.root, "lock")}, Ledger: l,
		Steps: []bootstrap.Step{{Name: "cni", Wants: i}},
	}
}

func applied(t *testing.T, p *bootstrap.Plan) []string {
	t.Helper()
	report, err := p.Apply(background)
	require.NoError(t, err)
	again, err := p.Apply(background)
	require.NoError(t, err)
	require.Equal(t, bootstrap.Unchanged, again.Results[0].Status, again.Results[0].Changes)
	return report.Results[0].Changes
}

func uninstalled(t *testing.T, p *bootstrap.Plan) {
	t.Helper()
	_, err := p.Uninstall(background)
	require.NoError(t, err)
}

func TestPLAN14_APluginOfTwoAgents(t *testing.T) {
	for _, replace := range [][]string{nil, {}} {
		for _, order := range [][]int{{0, 1}, {1, 0}} {
			n := newNode(t)
			plans := []*bootstrap.Plan{n.agent("acme", "", nil), n.agent("chained", "", func(i *cniinstall.Install, _ *ledger.Ledger) {
				i.Replace = replace
			})}
			applied(t, plans[0])
			check, err := plans[1].Check(background)
			require.NoError(t, err)
			applied(t, plans[1])
			require.Contains(t, check.Results[0].Changes, "keep "+n.plugin("portmap")+` also for this agent: agent "acme" has made it`)
			uninstalled(t, plans[order[0]])
			require.FileExists(t, n.plugin("portmap"))
			require.Len(t, tree(t, n.bin), 3) // including the directory
			require.Len(t, tree(t, n.conf), 2)
			uninstalled(t, plans[order[1]])
			require.NoDirExists(t, filepath.Join(n.root, "opt"))
			require.NoDirExists(t, filepath.Join(n.root, "etc"))
			require.NoDirExists(t, n.state)
		}
	}
}

// Setting aside another agent's configuration is allowed only on request.
func TestPLAN14_AConfigurationOfAnotherAgentIsSetAsideOnRequest(t *testing.T) {
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		n := newNode(t)
		var plans []*bootstrap.Plan
		for _, name := range []string{"acme", "only"} {
			plans = append(plans, n.agent(name, "", func(i *cniinstall.Install, l *ledger.Ledger) {
				i.Exclusive, l.Override = name == "only", name == "only"
			}))
		}
		applied(t, plans[0])
		plans[1].Ledger.Override = false
		_, err := plans[1].Apply(background)
		require.ErrorIs(t, err, ledger.ErrConflict)
		require.FileExists(t, filepath.Join(n.conf, "10-acme.conflist"))
		plans[1] = n.agent("only", "", func(i *cniinstall.Install, l *ledger.Ledger) { i.Exclusive, l.Override = true, true })
		applied(t, plans[1])
		require.NoFileExists(t, filepath.Join(n.conf, "10-acme.conflist"))
		_, err = plans[0].Apply(background)
		require.ErrorIs(t, err, ledger.ErrConflict)
		uninstalled(t, plans[order[0]])
		names, err := os.ReadDir(n.conf)
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(names, func(f os.DirEntry) bool { return f.Name() == "10-"+[]string{"acme", "only"}[order[1]]+".conflist" }))
		uninstalled(t, plans[order[1]])
		require.NoDirExists(t, filepath.Join(n.root, "etc"))
		require.NoDirExists(t, n.state)
	}
}
