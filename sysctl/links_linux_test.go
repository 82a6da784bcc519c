// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/sysctl"
)

// oddLinks are names that the kernel accepts: bytes, of which patterns, quotes, escapes and
// characters that are blanks only to Unicode are made too.
func oddLinks() []string {
	return []string{"br[0]", "br0", "lxc[1]", "lxc*", "lxc?", "l{x,y}", `q"q"`, `b\x41`, "caf\xe9", "café", "\xff\xfe", "n\u0085l", "e\u2003m", ".dot", "a.b[c].d"}
}

// The values of links come back, whatever bytes their names hold, and a recorded name is
// never read as a pattern.
func TestSYS9_TheValuesOfLinksWithOddNamesComeBack(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	names := oddLinks()
	for i := 0; i < len(names); i += 2 {
		veth(t, names[i], append(names, "peer")[i+1])
	}
	before := values(t)
	settings := []sysctl.Setting{{Key: "net.ipv4.conf.*.rp_filter", Value: "2"}, {Key: "net/ipv4/conf/.*/rp_filter", Value: "2"}}
	d := recordedFile{
		sysctl.DropIn{Dir: t.TempDir(), Name: "50-x.conf", Settings: settings},
		real(t, filepath.Join(t.TempDir(), "state")),
	}
	require.NoError(t, d.Apply(t.Context()))
	require.Empty(t, check(t, d))
	changed := differing(before, values(t))
	for _, name := range names {
		require.Equal(t, "2", changed["net/ipv4/conf/"+name+"/rp_filter"], "%q", name)
	}
	require.NoError(t, d.Apply(t.Context()), "again, with what is recorded")
	require.Len(t, checkRevert(t, d), len(changed)+1)
	require.NoError(t, d.Revert(t.Context()))
	require.Empty(t, slices.Sorted(maps.Keys(differing(before, values(t)))))
	require.Empty(t, checkRevert(t, d))
}
