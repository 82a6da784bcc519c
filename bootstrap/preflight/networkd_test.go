// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package preflight_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/preflight"
)

const (
	runs    = "run/systemd/netif/state"
	both    = "[Network]\nManageForeignRoutes=no\nManageForeignRoutingPolicyRules = off\n"
	vendors = "usr/lib/systemd/networkd.conf"
)

// Precedence is that of networkd.conf(5), as systemd 256 documents it.
func TestRDY8_Networkd(t *testing.T) {
	debian, err := os.ReadFile("testdata/networkd.conf") // as Debian 12 ships it: all lines are comments
	require.NoError(t, err)
	shipped := string(debian)
	for name, test := range map[string]struct {
		files map[string]string
		found string // what is to be set; empty: nothing is found
	}{
		"not there":            {files: map[string]string{"etc/systemd/networkd.conf": shipped}},
		"runs as shipped":      {map[string]string{runs: "", "etc/systemd/networkd.conf": shipped}, "ManageForeignRoutes=no and ManageForeignRoutingPolicyRules=no"},
		"enabled":              {map[string]string{"etc/systemd/system/dbus-org.freedesktop.network1.service": ""}, "ManageForeignRoutes=no and ManageForeignRoutingPolicyRules=no"},
		"set":                  {files: map[string]string{runs: "", "etc/systemd/networkd.conf": both}},
		"vendor's":             {files: map[string]string{runs: "", vendors: both}},
		"vendor's is replaced": {map[string]string{runs: "", vendors: both, "run/systemd/networkd.conf": shipped}, "ManageForeignRoutes=no and"},
		"drop-in":              {files: map[string]string{runs: "", "etc/systemd/networkd.conf": shipped, "usr/lib/systemd/networkd.conf.d/10-a.conf": both}},
		"one of both":          {map[string]string{runs: "", "etc/systemd/networkd.conf.d/10-a.conf": "[Network]\nManageForeignRoutes=false\n"}, "(set ManageForeignRoutingPolicyRules=no in"},
		"later drop-in wins": {map[string]string{
			runs: "", "etc/systemd/networkd.conf.d/10-a.conf": both, "usr/lib/systemd/networkd.conf.d/90-b.conf": "[Network]\nManageForeignRoutes=yes\n",
		}, "(set ManageForeignRoutes=no in"},
		"drop-in is masked by one of its name": {map[string]string{
			runs: "", "etc/systemd/networkd.conf.d/10-a.conf": "", "usr/lib/systemd/networkd.conf.d/10-a.conf": both,
		}, "ManageForeignRoutes=no and"},
		"drop-in wins over the main file": {map[string]string{
			runs: "", "etc/systemd/networkd.conf": both, "run/systemd/networkd.conf.d/10-a.conf": "[Network]\nManageForeignRoutingPolicyRules=1\n",
		}, "(set ManageForeignRoutingPolicyRules=no in"},
		"another section": {map[string]string{runs: "", "etc/systemd/networkd.conf": "[DHCPv4]\nManageForeignRoutes=no\n#" + both}, "ManageForeignRoutes=no and"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, content := range test.files {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(content), 0o644))
			}
			findings, err := preflight.NetworkdBelow(t.Context(), root)
			require.NoError(t, err)
			if test.found == "" {
				require.Empty(t, findings)
				return
			}
			require.Len(t, findings, 1)
			require.ErrorContains(t, findings[0], test.found)
			require.Equal(t, "preflight.networkd", bootstrap.Code(findings[0]))
		})
	}
}
