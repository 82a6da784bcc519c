// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package slipway_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/configresolve/kube"
	"github.com/slipway-dev/slipway/sysctl"
)

// Each nodeinit in a manifest or a component says for which agent it is: without, it is for Cilium.
func TestPLAN14_EachManifestNamesItsAgent(t *testing.T) {
	comment, command := regexp.MustCompile(`(?m)(^| )#.*`), regexp.MustCompile(`(?m)(\[|value: |- )[^ \n]*\bnodeinit([,\]}]|$)`)
	found := 0
	require.NoError(t, filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".yaml" {
			return err
		}
		raw, err := os.ReadFile(file)
		raw = comment.ReplaceAll(raw, nil)
		n := len(command.FindAll(raw, -1))
		if found += n; !strings.Contains(string(raw), "components: [../run]") { // it has another path
			require.Equal(t, n, strings.Count(string(raw), "--agent="), file)
		}
		return err
	}))
	require.GreaterOrEqual(t, found, 8)
}

// An agent's names occur in its presets only: no zero value does or prints anything specific to
// Cilium.
func TestNoZeroValueIsOneAgents(t *testing.T) {
	node := t.TempDir()
	conf := filepath.Join(node, "net.d")
	require.NoError(t, os.Mkdir(conf, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(conf, "10-other.conf"), nil, 0o644))
	var asked []string
	kernel := &bootstraptest.Kernel{Fail: func(op, path string) error {
		asked = append(asked, path)
		return nil
	}}
	says := func(a bootstrap.Action) string {
		changes, err := a.Check(t.Context())
		return fmt.Sprint(changes, err)
	}
	wanted := func(w ledger.Wanter) string {
		changes, err := ledger.Check(t.Context(), w)
		return fmt.Sprint(changes, err)
	}
	read := func(s configresolve.Source) string {
		layers, err := s.Read(context.Background())
		return fmt.Sprint(s.Ref, layers, err)
	}
	specs, specErr := configresolve.ParseSpecs([]string{"config-map"}, configresolve.Ref{Namespace: "n"}, "")
	network := cniinstall.Install{
		BinDir: node, ConfDir: conf, ConfName: "05-x.conf", Exclusive: true, Config: cniinstall.Whole(`{"name":"n","type":"x"}`), Optional: []string{"loopback"},
	}
	require.NoError(t, os.WriteFile(filepath.Join(node, "x"), []byte("#!/bin/sh\necho '{\"cniVersion\":\"1.0.0\",\"supportedVersions\":[\"0.1.0\"]}'\n"), 0o755))
	for what, text := range map[string]string{
		"cgroup.Mount":             says(cgroup.Mount{Kernel: kernel}),
		"bpffs.Mount":              says(bpffs.Mount{Kernel: kernel}),
		"sysctl.DropIn":            says(sysctl.DropIn{Kernel: sysctl.Kernel{Files: kernel}}),
		"sysctl.Settings":          wanted(sysctl.Settings{Kernel: sysctl.Kernel{Files: kernel}}),
		"cniinstall.Install":       says(cniinstall.Install{}) + says(network),
		"cniinstall.Agent":         says(cniinstall.Install{Config: cniinstall.Agent{}, BinDir: node, ConfDir: conf, ConfName: "05-x.conflist"}),
		"cniinstall.Chained":       says(cniinstall.Install{Config: cniinstall.Chained{}, BinDir: node, ConfDir: conf, ConfName: "05-x.conflist"}),
		"hostpath.Paths":           wanted(hostpath.Paths{}),
		"configdir.Writer":         wanted(configdir.Writer{}),
		"configresolve.Dir":        read(configresolve.Dir("")),
		"configresolve.File":       read(configresolve.File("")),
		"configresolve.Env":        read(configresolve.Env("", nil)),
		"configresolve.Static":     read(configresolve.Static("", nil)),
		"configresolve.ParseSpecs": fmt.Sprint(specs, specErr),
		"kube.ConfigMap":           read((*kube.Client)(nil).ConfigMap("", "")),
		"kube.NodeConfigs":         read((*kube.Client)(nil).NodeConfigs("", "")),
		"kube.Node":                read((*kube.Client)(nil).Node("", "")),
		"cleanup.Ownership":        fmt.Sprintf("%+v", cleanup.Ownership{}),
	} {
		require.NotContains(t, strings.ToLower(text), "cilium", what)
	}
	require.NotContains(t, strings.Join(asked, " "), "cilium")
	require.Contains(t, says(network), "10-other.conf.aside")
}
