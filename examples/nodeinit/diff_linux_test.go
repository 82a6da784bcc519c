// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a file, a key or a value would become, on a terminal of 80 columns: on a new node, where
// others have changed everything, with a plugin in another's configuration, and of an uninstall.
func TestPLAN4_SEC8_ADifferenceOfEachKindOfContent(t *testing.T) {
	n := newParallelNode(t)
	n.env = []string{"NO_COLOR=1"}
	n.others()
	n.agentPlugin()
	configure := func(text string) { require.NoError(t, os.WriteFile(n.source, []byte(text), 0o644)) }
	configure("cluster-name: test\netcd-password: S3CRET\nmtu: \"9000\"\n")
	n.shell("echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter")
	args := func(command string, more ...string) []string {
		return append([]string{command, "--source", "file:" + n.source, "--dest", "/run/agent-config", "--plugins", n.plugins}, more...)
	}
	var scenes strings.Builder
	show := func(does string, args ...string) {
		args = append(args, "--diff")
		before := n.state()
		text := strings.ReplaceAll(n.onTerminal(2, args...), "\r\n", "\n")
		require.Empty(t, before.Diff(n.state()), "a dry run")
		require.NotContains(t, text, "S3CRET")
		scenes.WriteString("# " + does + "\n" + aDuration.ReplaceAllString(text, " T"))
		report := n.exits(2, append(args, "--output", "json")...)
		for _, r := range report.report(t).Results {
			require.Contains(t, text, r.Diff)
		}
		require.NotContains(t, report.stdout, "S3CRET")
		require.NotContains(t, n.exits(2, args[:len(args)-1]...).stdout, "\n---")
	}
	alone := []string{"--cni-template", "none"}
	show("a new node", args("check", alone...)...)
	show("a plugin in another's configuration", args("check", "--only", "cni", "--cni-chain", "other", "--cni-chain-in-place")...)
	n.ok(args("apply", alone...)...)
	show("uninstall", "uninstall", "--dry-run")
	configure("cluster-name: other\netcd-password: S3CRET2\nmtu-kept: \"9000\"\n")
	n.shell(`printf 'a\033[2J\tb\n' >> /etc/sysctl.d/99-zzz-override_cilium.conf
printf '{\n  "name": "mine",\n  "token": "S3CRET"\n}' > /etc/cni/net.d/05-cilium.conflist
chmod 600 /opt/cni/bin/cilium-cni
printf 'an\0other' > /opt/cni/bin/test-cni
umount /run/cilium/cgroupv2
echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter`)
	show("others have changed it", args("check", alone...)...)
	golden(t, "diff.txt", scenes.String())
}
