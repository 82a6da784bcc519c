// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package preflight_test

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/preflight"
	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/testns"
)

// Every kernel of the module's floor has what Cilium needs; BTF depends on its build.
func TestRDY8_ThisKernelHasWhatCiliumNeeds(t *testing.T) {
	testns.Root(t)
	features := preflight.CiliumFeatures()
	findings, err := preflight.Kernel("Cilium", features...)(t.Context())
	require.NoError(t, err)
	require.Empty(t, findings)

	features = append(features, preflight.Feature{Name: "the map of tomorrow", Have: func() error { return errors.Join(nil, ebpf.ErrNotSupported) }})
	findings, err = preflight.Kernel("Cilium", features...)(t.Context())
	require.NoError(t, err)
	require.Len(t, findings, 1)
	require.ErrorContains(t, findings[0], "the kernel lacks the map of tomorrow, without which Cilium does not start")
	require.ErrorIs(t, findings[0], failure.ErrCertain)
}

func TestRDY8_TablesInUse(t *testing.T) {
	testns.Enter(t, testns.Net)
	tables := preflight.Tables(cleanup.Cilium())
	script(t, "ip link set lo up; ip rule add pref 9 fwmark 0x200/0xf00 lookup 2004; ip route add local default dev lo table 2004; ip rule add pref 50 from 10.0.0.0/8 lookup 99")
	findings, err := tables(t.Context())
	require.NoError(t, err)
	require.Empty(t, findings, "the agent's own, and what leads elsewhere")

	script(t, "ip rule add pref 100 from 10.7.0.0/16 lookup 2005; ip -6 rule add pref 7 to fd07::/64 lookup 202; ip route add 10.9.0.0/16 dev lo table 200")
	findings, err = tables(t.Context())
	require.NoError(t, err)
	require.Len(t, findings, 1)
	require.Equal(t, "preflight.table-in-use", bootstrap.Code(findings[0]))
	for _, want := range []string{"ip rule IPv4 100: from 10.7.0.0/16 lookup 2005", "ip rule IPv6 7: to fd07::/64 lookup 202", "route 10.9.0.0/16"} {
		require.ErrorContains(t, findings[0], want)
	}

	script(t, "for i in $(seq 20); do ip route add 10.10.$i.0/24 dev lo table 200; done")
	findings, err = tables(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, findings[0], ", and 13 more (")
}

// A rule at a mark of the agent takes its packets, whatever other table it leads to.
func TestRDY8_MarksInUse(t *testing.T) {
	testns.Enter(t, testns.Net)
	tables := preflight.Tables(cleanup.Cilium())
	script(t, `ip rule add pref 9 fwmark 0x200/0xf00 lookup 2004 # the agent's own, and AWS's to the same table
ip rule add pref 1024 fwmark 0x80/0x80 lookup main
ip rule add pref 5210 fwmark 0x80000/0xff0000 lookup 52 # of others: Tailscale, wg-quick, a mask without the agent's bits
ip rule add pref 32764 not fwmark 0xca6c lookup 51820
ip rule add pref 40 fwmark 0x111/0xfff lookup 100
ip rule add pref 41 fwmark 0x0/0xf00 lookup 100`)
	findings, err := tables(t.Context())
	require.NoError(t, err)
	require.Empty(t, findings)

	script(t, "ip rule add pref 5 fwmark 0x200/0xf00 lookup 99; ip -6 rule add pref 6 fwmark 0xd00 lookup 98; ip rule add pref 7 fwmark 0x80/0x80 lookup 97; ip rule add pref 8 fwmark 0xa00/0xf00 lookup 2005")
	findings, err = tables(t.Context())
	require.NoError(t, err)
	require.Len(t, findings, 1)
	require.Equal(t, "preflight.table-in-use", bootstrap.Code(findings[0]))
	for _, want := range []string{
		"ip rule IPv4 5: fwmark 0x200/0xf00 lookup 99: foreign, at the agent's mark 0x200/0xf00",
		"ip rule IPv6 6: fwmark 0xd00/0xffffffff lookup 98: foreign, at the agent's mark 0xd00/0xf00",
		"ip rule IPv4 7: fwmark 0x80/0x80 lookup 97: foreign, at the agent's mark 0x80/0x80",
	} {
		require.ErrorContains(t, findings[0], want)
	}
	require.NotContains(t, findings[0].Error(), "lookup 2005", "it is the agent's own")
}

// script runs ip in the thread's network namespace.
func script(t *testing.T, text string) {
	t.Helper()
	out, err := exec.Command("sh", "-euc", text).CombinedOutput()
	require.NoError(t, err, string(out))
}
