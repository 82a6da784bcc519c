// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// left makes Cilium's leftovers on a node.
func (n *node) left() {
	n.t.Helper()
	n.shell(`ip link add cilium_host type veth peer name cilium_net
		ip rule add pref 9 fwmark 0x200/0xf00 lookup 2004 proto kernel
		iptables -t nat -N CILIUM_POST_nat
		iptables -t nat -A POSTROUTING -j CILIUM_POST_nat
		iptables -t nat -N KUBE-SERVICES
		mkdir -p /run/cilium/state && touch /run/cilium/state/x`)
}

// A plan reviewed on one node is for others, where the kernel has assigned other numbers.
func TestCLN11_ACleanupReviewedOnceForManyNodes(t *testing.T) {
	t.Parallel()
	first := newNode(t)
	first.left()
	first.shell("ip link add lxc12345 type veth peer name eth8; ip rule add pref 10 fwmark 0xa00/0xf00 lookup 2005 proto kernel")
	before := first.wholeState()
	plan := filepath.Join(first.work, "plan.yaml")
	write := []string{"cleanup", "--all-state", "--dry-run", "-o", plan}
	o := first.ok(write...)
	require.Equal(t, o.stdout, first.ok("cleanup", "--all-state", "--dry-run").stdout)
	require.Empty(t, before.Diff(first.wholeState()))
	text, err := os.ReadFile(plan)
	require.NoError(t, err)
	require.Contains(t, string(text), "version: 1\nagent: cilium\nscope: all-state\ngroups:\n")
	require.NotRegexp(t, "handle|index", string(text))
	require.Contains(t, first.exits(1, write...).stderr, "--output-file: "+plan+" exists, and may have been reviewed: name another file, or remove it first")

	reviewed := strings.Replace(string(text), "object: lxc12345", "match: lxc*", 1)
	require.NoError(t, os.WriteFile(plan, []byte(reviewed), 0o644))
	second := newNode(t)
	second.shell("for i in 1 2 3 4; do ip link add type veth; done; iptables -t nat -N FIRST; iptables -t nat -A POSTROUTING -j FIRST")
	without := second.state()
	second.left()
	second.shell("ip link add lxcabcde type veth peer name eth9; ip rule add pref 1 fwmark 0xd00/0xf00 lookup 200 proto kernel")
	o = second.ok("cleanup", "--plan="+plan, "-f")
	require.Contains(t, o.stdout, "missing ip rule IPv4 10: fwmark 0xa00/0xf00 lookup 2005  (the plan names it, and it is not on this node)\n")
	require.Contains(t, o.stdout, "ip rule IPv4 1: fwmark 0xd00/0xf00 lookup 200  (the plan does not name it)")
	require.Equal(t, "1\n32766\n32767", second.shell("ip rule | grep -v 'lookup local' | cut -d: -f1"))
	require.Equal(t, "-N FIRST\n-N KUBE-SERVICES", second.shell("iptables -t nat -S | grep -e ^-N | sort"))
	require.Empty(t, without.Diff(second.state()))
	require.Contains(t, second.ok("cleanup", "--plan="+plan, "-f").stdout, "nothing to remove")
}

func TestCLN11_APlanThatIsRefused(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.left()
	before := n.state()
	const head = "version: 1\nagent: cilium\nscope: all-state\n"
	link := `groups: [{"kind": link, "object": cilium_host}]` + "\n"
	for content, want := range map[string]string{
		"version: 2\nagent: cilium\nscope: all-state\nnot: [x]\n": "version 2: this program takes version 1",
		head + "not: [x]\n" + link:                                "line 4: field not not found",
		head + "groups: [{kind: link, object: x, unless: y}]\n":   "field unless not found",
		head + link + "---\n" + head:                              "line 6 starts a second document",
		"":                                                        "version 0: this program takes version 1",
		"groups: [\n":                                             "did not find expected node content",
		head + "groups: [{kind: lnik, object: x}]\n":              `unknown kind "lnik"`,
		strings.Replace(head, "cilium", "calico", 1) + link:       `it is for agent "calico", and the flags select "cilium"`,
	} {
		n.write("/run/plan.yaml", content)
		o := n.run("cleanup", "--plan", "/run/plan.yaml", "-f")
		require.Equal(t, 64, o.code, "%s: %s", content, o.stderr)
		require.Contains(t, o.stderr, want)
	}
	n.write("/run/plan.yaml", head+link)
	require.Contains(t, n.exits(64, "cleanup", "--plan", "/run/plan.yaml", "--bpf-state", "-f").stderr, "it is for all-state, and the flags select bpf-state")
	for _, args := range [][]string{{"--all-state"}, {"--dry-run", "--plan", "/run/plan.yaml"}, {"--dry-run"}} {
		require.Contains(t, n.exits(64, append([]string{"cleanup", "-o", "/run/new.yaml"}, args...)...).stderr, "--output-file goes with --dry-run ")
	}
	require.Equal(t, 1, n.run("cleanup", "--plan", "/run/none.yaml", "-f").code)
	n.shell("rm /run/plan.yaml")
	require.Empty(t, before.Diff(n.state()))
}

func TestCLN11_WhatIsWrittenIsReadBack(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -p /sys/fs/bpf && mount -n -t bpf bpf /sys/fs/bpf")
	names := []string{"\xff\xfe", "\u2028\ufeff", "\x01\x7f\u0085", `"\xff"`, "\t'{[\n- #:", "\u00e9\U0001f41d"}
	n.do(func() error {
		for _, name := range names {
			if err := os.MkdirAll("/sys/fs/bpf/cilium/"+name, 0o700); err != nil {
				return err
			}
		}
		return nil
	})
	n.shell(`ip link add "$(printf 'cilium_\377')" type veth peer name "$(printf 'cilium_"\303')"`)
	plan := filepath.Join(n.work, "plan.yaml")
	o := n.run("cleanup", "--all-state", "--dry-run", "-o", plan)
	require.Zero(t, o.code, o.stderr)
	o = n.run("cleanup", "--plan", plan, "-f")
	require.Zero(t, o.code, o.stderr)
	require.NotContains(t, o.stdout, "left as it is")
	require.NotContains(t, o.stdout, "not on this node")
	require.Empty(t, n.shell("(ls -A /sys/fs/bpf; ip -o link) | grep cilium || true"))

	n.do(func() error { // more than 8 MiB of names
		for i := range 400 {
			path := "/sys/fs/bpf/cilium/" + strconv.Itoa(i) + strings.Repeat("/"+strings.Repeat("x", 250), 15)
			if err := os.MkdirAll(path, 0o700); err != nil {
				return err
			}
		}
		return nil
	})
	plan += "2"
	o = n.run("cleanup", "--all-state", "--dry-run", "-o", plan)
	require.Equal(t, 1, o.code, o.stderr)
	require.Contains(t, o.stderr, "--output-file: ")
	require.Contains(t, o.stderr, "8388608")
	require.NoFileExists(t, plan, "it could not be read")
}
