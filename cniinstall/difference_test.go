// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cniinstall"
)

// The configuration looks at its plugins too.
func TestPLAN4_CNI1_EachFileIsInADifferenceOnce(t *testing.T) {
	dir := t.TempDir()
	install := cniinstall.Install{
		Plugins: os.DirFS(filepath.Join(dir, "new")), BinDir: filepath.Join(dir, "cni", "bin"),
		ConfDir: filepath.Join(dir, "cni", "net.d"), ConfName: "05-a.conflist", Config: cniinstall.Agent{Plugin: "a-cni", Network: "a"},
	}
	for _, path := range []string{"new/a-cni", "new/loopback", "cni/bin/a-cni"} {
		path = filepath.Join(dir, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(path), 0o755))
	}
	p := bootstrap.Plan{
		Ledger: &ledger.Ledger{Dir: filepath.Join(dir, "ledger"), Agent: "a", NoOwner: true}, Steps: []bootstrap.Step{{Name: "cni", Wants: install}},
		Diff: func(_, after, _, _ string) string { return "+++ " + after + "\n" },
	}
	report, err := p.Check(t.Context())
	require.NoError(t, err)
	for _, name := range []string{"a-cni", "loopback", "05-a.conflist"} {
		require.Equal(t, 1, strings.Count(report.Results[0].Diff, "/"+name+"\n"), report.Results[0].Diff)
	}
}
