// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/code"
)

// cached is the record that libcni keeps of a sandbox's network.
func cached(t *testing.T, sandbox, network string, conf []byte) []byte {
	t.Helper()
	content, err := json.Marshal(map[string]any{"kind": "cniCacheV1", "containerId": sandbox, "config": conf, "ifName": "eth0", "networkName": network})
	require.NoError(t, err)
	return content
}

func TestCNI8_WhatSandboxesNeedStays(t *testing.T) {
	n, i := installed(t)
	conf, err := os.ReadFile(n.confFile())
	require.NoError(t, err)
	results := filepath.Join(n.root, "results")
	require.NoError(t, os.Mkdir(results, 0o700))
	others := []byte(`{"cniVersion":"1.0.0","name":"other","plugins":[{"type":"bridge"}]}`)
	loopback := []byte(`{"cniVersion":"0.3.1","name":"cni-loopback","plugins":[{"type":"loopback"}]}`)
	result := func(name, network string, conf []byte) string {
		path := filepath.Join(results, name)
		require.NoError(t, os.WriteFile(path, cached(t, name, network, conf), 0o600))
		return path
	}
	result("x", "other", others)
	undo := func(u cniinstall.Uninstall) error {
		u.Results = results
		_, err := n.undo(u)
		return err
	}

	pod := result("a", "cilium", conf)
	for range 2 {
		err := undo(cniinstall.Uninstall{})
		require.ErrorIs(t, err, cniinstall.ErrInUse)
		require.ErrorContains(t, err, n.confFile()+" is kept: sandboxes need it for their deletion: 1, by "+results)
		require.Equal(t, "cni.in-use", code.Of(err))
		require.FileExists(t, n.confFile())
		require.FileExists(t, n.plugin("cilium-cni"))
	}
	require.FileExists(t, n.plugin("loopback"), "it stays as long as the configuration")

	require.NoError(t, undo(cniinstall.Uninstall{KeepPlugins: true}), "an agent that comes back takes its configuration away")
	require.NoFileExists(t, n.confFile())
	err = undo(cniinstall.Uninstall{})
	require.ErrorIs(t, err, cniinstall.ErrInUse)
	require.ErrorContains(t, err, n.plugin("cilium-cni")+" is kept: ")

	require.NoError(t, os.Remove(pod))
	lo := result("lo", "cni-loopback", loopback)
	require.NoError(t, i.Apply(t.Context()))
	err = undo(cniinstall.Uninstall{})
	require.ErrorContains(t, err, n.plugin("loopback")+" is kept: ")
	require.NotContains(t, err.Error(), "cilium-cni")
	require.NoFileExists(t, n.confFile(), "no sandbox has its network")

	require.NoError(t, os.WriteFile(lo, []byte("{"), 0o600))
	require.NoError(t, i.Apply(t.Context()))
	require.ErrorContains(t, undo(cniinstall.Uninstall{}), "cannot tell which sandbox needs "+lo)
	require.NoError(t, undo(cniinstall.Uninstall{Force: true}))
	require.NoDirExists(t, n.bin)
	require.NoDirExists(t, n.state)
}

// Another agent's configuration, chained onto ours or the target of ours, has the same network:
// it serves the pods whose plugins it names. So does one that we publish in the place of ours,
// whatever its network is called: an apply keeps the former one as an undo does.
func TestCNI8_PLAN6_AnotherConfigurationServes(t *testing.T) {
	const own = `{"type":"cilium-cni"}`
	conf := func(network, plugins string) []byte {
		return []byte(`{"cniVersion":"1.0.0","name":"` + network + `","plugins":[` + plugins + `]}`)
	}
	for name, tc := range map[string]struct {
		theirs    map[string][]byte
		isRemoved bool
		next      []byte // ours, which an apply publishes
	}{
		"it names what the pod has":      {map[string][]byte{"10-theirs.conflist": conf("cilium", own+`,{"type":"tuning"}`)}, true, nil},
		"it lacks a plugin":              {map[string][]byte{"10-theirs.conflist": conf("cilium", `{"type":"tuning"}`)}, false, nil},
		"it has another network":         {map[string][]byte{"10-theirs.conflist": conf("theirs", own)}, false, nil},
		"the runtime finds another one":  {map[string][]byte{"08-first.conflist": conf("theirs", own), "10-theirs.conflist": conf("cilium", own)}, false, nil},
		"the runtime finds a broken one": {map[string][]byte{"08-first.conflist": []byte("{"), "10-theirs.conflist": conf("cilium", own)}, false, nil},
		"none remains":                   {nil, false, nil},
		"ours, with another network":     {nil, true, conf("ours", own)},
		"ours lacks a plugin":            {nil, false, conf("cilium", `{"type":"tuning"}`)},
		"ours is another agent's":        {nil, false, conf("ours", `{"type":"tuning"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			n, i := installed(t)
			ours, err := os.ReadFile(n.confFile())
			require.NoError(t, err)
			for name, content := range tc.theirs {
				require.NoError(t, os.WriteFile(n.other(name), content, 0o600))
			}
			results := filepath.Join(n.root, "results")
			require.NoError(t, os.Mkdir(results, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(results, "a"), cached(t, "a", "cilium", ours), 0o600))

			if tc.next == nil {
				_, err = n.undo(cniinstall.Uninstall{Results: results})
			} else {
				n.source("tuning", script("1.0.0"))
				i.Config, i.ConfName, i.Book = cniinstall.Whole(tc.next), "10-ours.conflist", n.book(cniinstall.Uninstall{Results: results})
				var done ledger.Outcome
				done, err = i.apply(t.Context())
				require.NoError(t, err)
				for _, u := range done.Undone {
					err = errors.Join(err, u.Err)
				}
			}
			require.FileExists(t, n.plugin("cilium-cni"), "the pod needs it")
			if tc.isRemoved {
				require.NotErrorIs(t, err, cniinstall.ErrInUse)
				require.NoFileExists(t, n.confFile())
				return
			}
			require.ErrorIs(t, err, cniinstall.ErrInUse)
			require.ErrorContains(t, err, n.confFile()+" is kept: sandboxes need it for their deletion: 1, by "+results)
			require.FileExists(t, n.confFile())
		})
	}
}
