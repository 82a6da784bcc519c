// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package gate_test

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/gate"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/internal/testns"
)

// modes lists for each mode the objects that kube-proxy makes before its first sync, if any,
// and those that show that it has synced.
var modes = map[string]struct{ before, rules []string }{
	"nftables": {
		[]string{"nft add table ip kube-proxy"},
		[]string{"nft add chain ip kube-proxy services"},
	},
	"nftables, IPv6": {nil, []string{"nft add table ip6 kube-proxy", "nft add chain ip6 kube-proxy services"}},
	"iptables-nft": {
		[]string{"iptables-nft -t nat -N KUBE-SERVICES", "iptables-nft -t filter -N KUBE-NODEPORTS", "iptables-nft -t mangle -N KUBE-KUBELET-CANARY"},
		[]string{"iptables-nft -t nat -N KUBE-NODEPORTS"},
	},
	"ip6tables-nft": {nil, []string{"ip6tables-nft -t nat -N KUBE-NODEPORTS"}},
	"legacy iptables": {
		[]string{"iptables-legacy -t nat -N KUBE-SERVICES", "iptables-legacy -t filter -N KUBE-NODEPORTS", "iptables-legacy -t nat -A KUBE-SERVICES -p tcp -m comment --comment KUBE-NODEPORTS -j RETURN"},
		[]string{"iptables-legacy -t nat -N KUBE-NODEPORTS"},
	},
	"legacy ip6tables": {
		[]string{"ip6tables-legacy -t nat -N KUBE-SERVICES", "ip6tables-legacy -t nat -A POSTROUTING -s fd00::/64 -j MASQUERADE"},
		[]string{"ip6tables-legacy -t nat -N KUBE-NODEPORTS"},
	},
	"ipvs": {nil, []string{"iptables-legacy -t nat -N KUBE-NODE-PORT"}},
}

// check returns a plan's Check of a gate on a node.
func check(t *testing.T, n *bootstraptest.Node, g gate.Gate) ([]string, error) {
	t.Helper()
	plan := bootstrap.Plan{Host: hostns.Host{Proc: n.Proc()}, Gates: []bootstrap.Step{{Name: "gate", Gate: g}}}
	report, err := plan.Check(t.Context())
	return report.Results[0].Changes, err
}

// What a pod sees that has not said where its host is.
func TestRDY1_TCPWithoutARouteNamesProc(t *testing.T) {
	testns.Enter(t, testns.Net)
	changes, err := gate.TCP("192.0.2.1:443").Check(t.Context())
	require.NoError(t, err)
	require.Len(t, changes, 1)
	require.Contains(t, changes[0], "network is unreachable (no route from this network namespace: in a container, hostns.Host.Proc says where the host's is)")
}

func TestRDY1_KubeProxysRules(t *testing.T) {
	if _, err := exec.LookPath("iptables-legacy"); err != nil {
		testns.Skip(t, "iptables-legacy is missing: make tools")
	}
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			n := bootstraptest.NewNode(t)
			run := func(lines []string) {
				for _, line := range lines {
					out, err := n.Command("sh", "-c", "exec "+line).CombinedOutput()
					require.NoError(t, err, "%s: %s", line, out)
				}
			}
			run(mode.before)
			g := gate.KubeProxy()
			changes, err := check(t, n, g)
			require.NoError(t, err)
			require.Equal(t, []string{"wait for kube-proxy's rules: neither nf_tables nor legacy iptables have any, for IPv4 or IPv6"}, changes)
			g.Every = 20 * time.Millisecond
			waiting := make(chan struct{})
			g.Probe = onceClosed(g.Probe, func(string) { close(waiting) })
			done := make(chan error, 1)
			go func() {
				done <- hostns.Host{Proc: n.Proc()}.Do(t.Context(), g.Where, g.Wait)
			}()
			<-waiting
			run(mode.rules)
			require.NoError(t, <-done)
		})
	}
}

// Check creates no table.
func TestRDY1_ToLookForRulesChangesNothing(t *testing.T) {
	n := bootstraptest.NewNode(t)
	_, err := check(t, n, gate.KubeProxy())
	require.NoError(t, err)
	require.NoError(t, n.Do(t.Context(), func(context.Context) error {
		for _, file := range []string{"ip_tables_names", "ip6_tables_names"} {
			names, err := os.ReadFile("/proc/thread-self/net/" + file)
			if err == nil {
				require.Empty(t, string(names))
			}
		}
		return nil
	}))
	out, err := n.Command("nft", "list", "ruleset").CombinedOutput()
	require.NoError(t, err)
	require.Empty(t, string(out))
}

// A table of 20,000 rules, as on large nodes, is searched to its end.
func TestRDY1_ManyLegacyRules(t *testing.T) {
	n := bootstraptest.NewNode(t)
	script := `{ echo '*nat'; for i in $(seq 4000); do echo ":KUBE-SVC-$i - [0:0]"; done; echo ':KUBE-NODEPORTS - [0:0]'
		for i in $(seq 4000); do for p in 1 2 3 4; do echo "-A KUBE-SVC-$i -p tcp --dport $p -j RETURN"; done; done; echo COMMIT; } | iptables-legacy-restore`
	out, err := n.Command("sh", "-c", script).CombinedOutput()
	require.NoError(t, err, string(out))
	changes, err := check(t, n, gate.KubeProxy())
	require.NoError(t, err)
	require.Empty(t, changes)
}

func TestPLAN7_KubeProxyNamesTheMissingCapability(t *testing.T) {
	n := bootstraptest.NewNode(t)
	look := func(effective [2]uint32) (err error) {
		require.NoError(t, n.Do(t.Context(), func(ctx context.Context) error { // on a throw-away thread
			header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			data := [2]unix.CapUserData{{Effective: effective[0], Permitted: effective[0]}, {Effective: effective[1], Permitted: effective[1]}}
			if err := unix.Capset(&header, &data[0]); err != nil {
				return err
			}
			_, err = gate.KubeProxy().Check(ctx)
			return nil
		}))
		return err
	}
	require.NoError(t, look([2]uint32{1 << unix.CAP_NET_ADMIN}))
	err := look([2]uint32{})
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorContains(t, err, "wait for kube-proxy's rules: look for the chains of kube-proxy for IPv4: ")
	require.ErrorContains(t, err, "needs CAP_NET_ADMIN in the user namespace of the network namespace")
}
