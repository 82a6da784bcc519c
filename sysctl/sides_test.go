// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/sysctl"
)

// Values that the kernel does not change are not recorded, and so never put back.
func TestSYS8_OnlyCopiedValuesHaveSides(t *testing.T) {
	for at, want := range map[string][]string{
		"net/ipv4/ip_forward":              {"net/ipv4/ip_forward", "net/ipv4/conf/*/forwarding", "net/ipv4/conf/all/accept_redirects"},
		"net/ipv4/conf/default/rp_filter":  {"net/ipv4/conf/*/rp_filter"},
		"net/ipv4/conf/default/forwarding": nil,
		"net/ipv4/conf/eth0/forwarding":    nil,
		"net/ipv4/conf/eth0/rp_filter":     nil,
		"net/ipv4/conf/all/rp_filter":      nil,
		"net/ipv6/conf/all/disable_ipv6":   {"net/ipv6/conf/*/disable_ipv6"},
		"net/ipv6/conf/all/accept_ra":      nil,
		"net/ipv6/conf/eth0/disable_ipv6":  nil,
		"net/ipv6/conf/default/forwarding": nil,
		"kernel/forwarding":                nil,

		"net/ipv6/conf/eth0/stable_secret":    {"net/ipv6/conf/eth0/addr_gen_mode"},
		"net/ipv6/conf/default/stable_secret": {"net/ipv6/conf/*/addr_gen_mode"},
	} {
		require.Equal(t, want, sysctl.Sides(at), at)
	}
}

// A folder that cannot be listed is reported, and the others are read.
func TestSYS5_AFolderThatIsNone(t *testing.T) {
	dir := t.TempDir()
	none := filepath.Join(dir, "10-x.conf")
	require.NoError(t, os.WriteFile(none, []byte("kernel.panic = 7\n"), 0o644))
	all, err := sysctl.Effective(none, dir)
	require.ErrorContains(t, err, none)
	require.Len(t, all, 1)
}
