// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/testns"
)

// Rules of each of kube-proxy's modes, and the rules the kubelet has written by then, which the
// chart's own script mistakes for kube-proxy's.
var (
	kubeletsRules = []string{"iptables-nft -t mangle -N KUBE-IPTABLES-HINT", "iptables-nft -t mangle -N KUBE-KUBELET-CANARY"}

	kubeProxyModes = map[string]string{
		"nftables":        "nft add table ip kube-proxy; nft add chain ip kube-proxy services",
		"iptables-nft":    "iptables-nft -t nat -N KUBE-NODEPORTS",
		"legacy iptables": "iptables-legacy -t nat -N KUBE-NODEPORTS",
	}
)

func TestRDY1_ApplyWaitsForKubeProxy(t *testing.T) {
	if _, err := exec.LookPath("iptables-legacy"); err != nil {
		testns.Skip(t, "iptables-legacy is missing: make tools")
	}
	for mode, rules := range kubeProxyModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.shell(strings.Join(kubeletsRules, "\n"))
			args := []string{"--host-proc", "/proc", "--wait-for-kube-proxy", "30s"}
			apply := n.args("apply", append(args, "--dest", filepath.Join(n.work, "config"))...)
			o := n.run(n.args("check", args...)...)
			require.Equal(t, 2, o.code, o.stderr)
			require.Contains(t, o.stdout, "wait for kube-proxy's rules: neither nf_tables nor legacy iptables have any, for IPv4 or IPv6")

			before := n.state()
			cmd := n.Command(binary, apply...)
			stdout, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			lines := bufio.NewScanner(stdout)
			for lines.Scan() && !strings.Contains(lines.Text(), "waiting for kube-proxy's rules: neither nf_tables nor legacy iptables have any") {
			}
			require.Empty(t, before.Diff(n.state()), "nothing is changed while it waits")
			n.shell(rules)
			for lines.Scan() {
			}
			require.NoError(t, cmd.Wait())

			o = n.run(apply...)
			require.Zero(t, o.code, o.stderr)
			require.Contains(t, o.stdout, "8 steps: 7 unchanged, 1 skipped")
		})
	}
}

// Like the chart, it does not wait if the agent replaces kube-proxy.
func TestRDY1_ApplyWaitsForNoKubeProxyThatIsReplaced(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	require.NoError(t, os.WriteFile(n.source, []byte("kube-proxy-replacement: \"true\"\n"), 0o644))
	o := n.run(n.args("apply", "--wait-for-kube-proxy", "30s", "--output", "json")...)
	require.Zero(t, o.code, o.stderr)
	gate := o.report(t).Results[0]
	require.Equal(t, "kube-proxy skipped", gate.Step+" "+gate.Status)
	require.Contains(t, gate.Reason, "kube-proxy-replacement")
}

func TestRDY1_ApplyFailsWhereKubeProxyDoesNotCome(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	before := n.state()
	o := n.run(n.args("apply", "--wait-for-kube-proxy", "1s")...)
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "wait for kube-proxy's rules: last seen: neither nf_tables nor legacy iptables have any, for IPv4 or IPv6: not within 1s")
	require.Empty(t, before.Diff(n.state()))

	start := time.Now()
	o = n.run(n.args("apply", "--wait-for-kube-proxy", "30s", "--source", "file:/none")...)
	require.Equal(t, 1, o.code)
	require.Less(t, time.Since(start), 20*time.Second, "without a configuration there is no wait")
}
