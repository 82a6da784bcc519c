// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
)

func TestCLN2_LookingMakesNoTable(t *testing.T) {
	enterNetfilter(t, "iptables-legacy", "nft")
	names := func() string {
		return run(t, "cat", "/proc/thread-self/net/ip_tables_names", "/proc/thread-self/net/ip6_tables_names")
	}
	require.Empty(t, names())
	apply(t, netfilterOnly())
	require.Empty(t, names()+run(t, "nft", "list", "ruleset"))

	rules(t, "iptables-legacy", "*mangle", "-A FORWARD -j ACCEPT", "COMMIT")
	apply(t, netfilterOnly())
	require.Equal(t, "mangle\n", names())
}

// A /proc that does not show the thread says nothing about its tables.
func TestCLN2_LegacyTablesOutOfSight(t *testing.T) {
	enterNetfilter(t)
	require.NoError(t, unix.Mount("tmpfs", "/proc", "tmpfs", 0, ""))
	_, err := netfilterOnly().Inventory(context.Background())
	require.NoError(t, unix.Unmount("/proc", 0))
	require.ErrorContains(t, err, "find iptables-legacy rules: stat /proc/thread-self/net: no such file or directory")
}

// toolsOnly gives the host only the named tools, as copies of others, until restore is called.
func toolsOnly(t testing.TB, tools map[string]string) (restore func()) {
	t.Helper()
	const dir = "/usr/sbin"
	content := map[string][]byte{}
	for name, from := range tools {
		b, err := os.ReadFile(filepath.Join(dir, from))
		require.NoError(t, err)
		content[name] = b
	}
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755"))
	for name, b := range content {
		executable(t, filepath.Join(dir, name), b)
	}
	return func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) }
}

// A pod may have written rules of a variant for which the host has no tool.
func TestCLN2_LegacyChainsAndNoToolOnTheHost(t *testing.T) {
	t.Parallel()
	const missing = "cleanup: find iptables-legacy rules: the host has no iptables-legacy-save and no iptables-legacy-restore to read and clean its ip tables (nat, filter): install its package iptables, or run this where they are installed"
	for name, c := range map[string]struct {
		tools map[string]string
		want  string
	}{
		"none": {nil, missing},
		"those of iptables-nft": {map[string]string{
			"iptables": "xtables-nft-multi", "iptables-save": "xtables-nft-multi", "iptables-restore": "xtables-nft-multi",
		}, missing},
		"half": {map[string]string{"iptables-legacy-save": "xtables-legacy-multi"}, missing},
		"plain": {map[string]string{
			"iptables": "xtables-legacy-multi", "iptables-save": "xtables-legacy-multi", "iptables-restore": "xtables-legacy-multi",
		}, ""},
		"multi": {map[string]string{"xtables-legacy-multi": "xtables-legacy-multi"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			enterNetfilter(t, "iptables-legacy")
			ctx, netfilter := context.Background(), netfilterOnly()
			restore := toolsOnly(t, c.tools)
			changes, err := netfilter.Check(ctx)
			restore()
			require.NoError(t, err, "where there is no table, no tool is missing")
			require.Empty(t, changes)

			rules(t, "iptables-legacy", "*filter", "COMMIT", "*nat", ":KUBE-SERVICES - [0:0]", "COMMIT")
			before := saved(t, "iptables-legacy")
			rules(t, "iptables-legacy", "*nat", ":CILIUM_POST_nat - [0:0]", "-A POSTROUTING -j CILIUM_POST_nat", "COMMIT")
			dirty := saved(t, "iptables-legacy")
			restore = toolsOnly(t, c.tools)
			err = netfilter.Apply(ctx)
			restore()
			if c.want == "" {
				require.NoError(t, err)
				require.Equal(t, before, saved(t, "iptables-legacy"))
				return
			}
			require.EqualError(t, err, c.want)
			require.Equal(t, dirty, saved(t, "iptables-legacy"))
			apply(t, netfilter)
		})
	}
}

// If iptables-restore refuses a set of deletions, each is tried alone, and all others are
// removed.
func TestCLN4_LegacyChainInUseIsNamedAndTheRestGoes(t *testing.T) {
	enterNetfilter(t, "iptables-legacy")
	rules(t, "iptables-legacy", foreignRules...)
	rules(t, "iptables-legacy", ourRules...)
	c := netfilterOnly()
	inv := listed(t, context.Background(), c)
	// Meanwhile a foreign rule jumps to one of our chains, and one of our rules and chains are
	// gone.
	rules(t, "iptables-legacy", "*nat", "-A OUTPUT -j CILIUM_PRE_nat", "COMMIT", "*filter", "-D FORWARD -j CILIUM_FORWARD", "-X CILIUM_alone", "COMMIT")
	var failed []string
	c.Progress = func(_, _ int, item string, err error) {
		if err != nil {
			failed = append(failed, item)
		}
	}
	err := c.Remove(context.Background(), inv.Items)
	require.Equal(t, []string{"iptables-legacy ip nat chain CILIUM_PRE_nat"}, failed)
	require.ErrorContains(t, err, "cleanup: remove iptables-legacy ip nat chain CILIUM_PRE_nat: /usr/sbin/iptables-legacy-restore: exit status 1: ")
	left := saved(t, "iptables-legacy")
	require.Equal(t, 3, strings.Count(left, "CILIUM_PRE_nat"), "the chain, the rule in it and the new one: %s", left)
	require.NotContains(t, left, "CILIUM_POST_nat\n")
	require.NotContains(t, left, "OLD_CILIUM")
	c.Progress = nil
	apply(t, c)
}

// The lock shared by all iptables programs is waited for once, not per item.
func TestCLN4_LegacyLockIsHeld(t *testing.T) {
	enterNetfilter(t, "iptables-legacy")
	rules(t, "iptables-legacy", "*nat", "COMMIT")
	lines := slices.Clone(ourRules[:4])
	for i := range 40 {
		lines = append(lines, fmt.Sprintf(":CILIUM_%d - [0:0]", i))
	}
	rules(t, "iptables-legacy", append(lines, "COMMIT")...)
	dirty := saved(t, "iptables-legacy")
	lock, err := os.OpenFile("/run/xtables.lock", os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	defer lock.Close()
	require.NoError(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
	c := netfilterOnly()
	start := time.Now()
	err = c.Apply(context.Background())
	require.Less(t, time.Since(start), time.Minute, "43 would wait for 5 s each")
	for _, chain := range []string{"CILIUM_POST_nat", "CILIUM_PRE_nat", "OLD_CILIUM_PRE_nat"} {
		require.ErrorContains(t, err, "remove iptables-legacy ip nat chain "+chain+": /usr/sbin/iptables-legacy-restore: exit status 4: ")
		require.ErrorContains(t, err, "Another app is currently holding the xtables lock")
	}
	require.NoError(t, lock.Close())
	require.Equal(t, dirty, saved(t, "iptables-legacy"))
	apply(t, c)
}

// A comment is arbitrary text. A rule quoted in a comment is no rule, and a rule that
// iptables-restore cannot read stays, with the chain it jumps to.
func TestCLN2_CommentsOfLegacyRulesAreNoRules(t *testing.T) {
	enterNetfilter(t, "iptables-legacy")
	rules(t, "iptables-legacy", "*nat", ":CILIUM_a - [0:0]", ":CILIUM_b - [0:0]", "COMMIT")
	add := func(chain, comment string, jump ...string) {
		run(t, append([]string{"iptables-legacy", "-t", "nat", "-A", chain, "-m", "comment", "--comment", comment}, jump...)...)
	}
	add("OUTPUT", "-j CILIUM_a")
	add("OUTPUT", `it's "-j CILIUM_a" \`)
	add("OUTPUT", "x\n-A PREROUTING -j CILIUM_a\n:CILIUM_c - [0:0]\nCOMMIT")
	before := saved(t, "iptables-legacy")
	add("OUTPUT", `it's ours: "-j ACCEPT"`, "-j", "CILIUM_a")
	add("INPUT", "two\nlines", "-j", "CILIUM_b")
	c := netfilterOnly()
	inv := listed(t, context.Background(), c)
	require.Equal(t, []string{
		"iptables-legacy ip nat rule OUTPUT -> CILIUM_a", "iptables-legacy ip nat chain CILIUM_a", "iptables-legacy ip nat chain CILIUM_b",
	}, objects(inv.Items))
	err := c.Remove(context.Background(), inv.Items)
	require.ErrorContains(t, err, "remove iptables-legacy ip nat chain CILIUM_b: ")
	require.NotContains(t, err.Error(), "CILIUM_a")
	run(t, "iptables-legacy", "-t", "nat", "-D", "INPUT", "1")
	require.Equal(t, strings.Replace(before, ":CILIUM_a -\n", "", 1), saved(t, "iptables-legacy"))
}

func TestSEC6_ToolsAreBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, want string }{
		"a line without an end": {"head -c 100000 /dev/zero", "more output than "},
		"output without an end": {"exec yes $(head -c 60000 /dev/zero | tr '\\0' x)", "more output than "},
		"no end":                {"echo >/run/begun; sleep 60", "context canceled"},
		"complaints":            {"head -c 100000 /dev/zero | tr '\\0' x >&2; exit 7", "exit status 7: xxx"},
		"half of a rule":        {`printf '*nat\n-A INPUT -m comment --comment "x\n'`, "ends within quotes"},
	} {
		t.Run(name, func(t *testing.T) {
			enterNetfilter(t, "iptables-legacy")
			rules(t, "iptables-legacy", "*nat", "COMMIT")
			const dir = "/usr/sbin"
			require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755"))
			for _, tool := range []string{"iptables-legacy-save", "iptables-legacy-restore"} {
				executable(t, filepath.Join(dir, tool), []byte("#!/bin/sh\n"+c.script+"\n"))
			}
			ctx := t.Context()
			if name == "no end" {
				limited, cancel := context.WithCancel(ctx)
				defer cancel()
				ctx = limited
				require.NoError(t, unix.Mkfifo("/run/begun", 0o600))
				begun, err := os.OpenFile("/run/begun", os.O_RDWR, 0)
				require.NoError(t, err)
				defer begun.Close()
				go func() {
					if _, err := begun.Read(make([]byte, 1)); err == nil {
						cancel()
					}
				}()
			}
			_, err := netfilterOnly().Inventory(ctx)
			require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH))
			require.ErrorContains(t, err, "find iptables-legacy rules: ")
			require.ErrorContains(t, err, c.want)
			require.Less(t, len(err.Error()), 600)
		})
	}
}

// iptables-restore reads no line break, so a rule with one in its comment keeps our chain. It is
// named with the command that deletes it.
func TestCLN12_ARuleOfLegacyIPTablesWithALineBreakIsNamedWithTheCommandThatDeletesIt(t *testing.T) {
	enterNetfilter(t, "iptables-legacy")
	rules(t, "iptables-legacy", "*nat", ":CILIUM_PRE_nat - [0:0]", ":CILIUM_other - [0:0]", "COMMIT")
	run(t, "iptables-legacy", "-t", "nat", "-A", "PREROUTING", "-m", "comment", "--comment", "a\nb \"c\"", "-j", "CILIUM_PRE_nat")
	before := saved(t, "iptables-legacy")
	c := netfilterOnly()
	err := c.Apply(t.Context())
	require.ErrorContains(t, err, "cleanup: remove iptables-legacy ip nat chain CILIUM_PRE_nat: ")
	require.ErrorContains(t, err, " of chain PREROUTING in table nat, to delete with: iptables-legacy -t nat -D PREROUTING -m comment --comment \"a\nb \\\"c\\\"\" -j CILIUM_PRE_nat)")
	require.Equal(t, strings.Replace(before, ":CILIUM_other -\n", "", 1), saved(t, "iptables-legacy"))

	_, command, _ := strings.Cut(err.Error(), ", to delete with: ")
	run(t, "sh", "-c", strings.TrimSuffix(command, ")"))
	apply(t, c)
	require.NotContains(t, saved(t, "iptables-legacy"), "CILIUM")
}

// The AWS VPC CNI's chains, table and rules are owned only on request. Rules of others with
// such a comment among other words, or inside quotes, stay byte for byte.
func TestCLN2_CLN12_AWSLeftovers(t *testing.T) {
	tools := []string{"iptables-nft", "ip6tables-nft", "iptables-legacy", "ip6tables-legacy"}
	enterNetfilter(t, append(tools, "nft")...)
	all := func() string {
		b := run(t, "ip", "rule") + run(t, "nft", "list", "tables")
		for _, tool := range tools {
			b += saved(t, tool)
		}
		return b
	}
	run(t, "nft", "add table ip aws-cni-mine; add table inet aws-cni")
	for _, tool := range tools {
		rules(t, tool, append(slices.Clone(foreignRules),
			"*nat", `-A PREROUTING -i eni+ -m comment --comment "AWS, outbound connections" -j MARK --set-xmark 0x80/0x80`,
			`-A PREROUTING -m comment --comment "not AWS, CONNMARK" -j ACCEPT`, `-A PREROUTING -m comment --comment "AWS, CONNMARK." -j ACCEPT`,
			`-A PREROUTING -m comment --comment "-m comment --comment \"AWS, CONNMARK\" " -j ACCEPT`,
			`-A PREROUTING -m comment --comment AWS -j ACCEPT`, "COMMIT",
			"*mangle", `-A FORWARD -j ACCEPT`, "COMMIT", "*raw", "-A OUTPUT -j ACCEPT", "COMMIT")...)
	}
	before := all()
	run(t, "nft", "add table ip aws-cni; add chain ip aws-cni snat-mark; add chain ip aws-cni nat-prerouting { type nat hook prerouting priority -90; }; add rule ip aws-cni nat-prerouting iifname \"eni*\" counter jump snat-mark")
	run(t, "ip", "rule", "add", "pref", "1024", "fwmark", "0x80/0x80", "lookup", "main")
	for _, tool := range tools {
		rules(t, tool, "*nat", ":AWS-SNAT-CHAIN-0 - [0:0]", ":AWS-SNAT-CHAIN-1 - [0:0]", ":AWS-CONNMARK-CHAIN-0 - [0:0]",
			`-A POSTROUTING -m comment --comment "AWS SNAT CHAIN" -j AWS-SNAT-CHAIN-0`,
			`-A AWS-SNAT-CHAIN-0 -m comment --comment "AWS SNAT CHAIN" -j AWS-SNAT-CHAIN-1`,
			`-A AWS-SNAT-CHAIN-1 ! -o vlan+ -m comment --comment "AWS, SNAT" -m addrtype ! --dst-type LOCAL -j MASQUERADE`,
			`-I PREROUTING 1 -i eni+ -m comment --comment "AWS, outbound connections" -m state --state NEW -j AWS-CONNMARK-CHAIN-0`,
			`-A PREROUTING -m comment --comment "AWS, CONNMARK" -j CONNMARK --restore-mark --mask 0x80`,
			`-A AWS-CONNMARK-CHAIN-0 -m comment --comment "AWS, CONNMARK" -j CONNMARK --set-xmark 0x80/0x80`, "COMMIT",
			"*mangle", `-I PREROUTING 1 -i eth0 -m comment --comment "AWS, primary ENI" -m addrtype --dst-type LOCAL --limit-iface-in -j CONNMARK --set-xmark 0x80/0x80`,
			`-A PREROUTING -i eni+ -m comment --comment "AWS, primary ENI" -j CONNMARK --restore-mark --mask 0x80`,
			`-A PREROUTING -i eni+ -m comment --comment "AWS, primary ENI" -j CONNMARK --restore-mark --mask 0x80`, "COMMIT",
			"*filter", `-I FORWARD 1 -m conntrack --ctstate NEW -m comment --comment "Block Node Local Pod access via IPv4" -j REJECT`, "COMMIT",
			"*raw", `-A OUTPUT -o vlan+ -m comment --comment "AWS, conntrack zone for SGP strict mode" -j CT --zone 1`, "COMMIT")
	}
	dirty := all()
	for _, scope := range []string{"bpf-state", "all-state"} {
		inv := listed(t, context.Background(), cleanup.Leftovers{Ownership: ours(), Scope: scope, CgroupRoot: noCgroup})
		require.Empty(t, inv.Items, "no scope takes them")
	}
	c := cleanup.Leftovers{Ownership: exampleOwnership(t, "aws-leftovers"), Scope: "all-state"}
	inv := listed(t, context.Background(), c)
	require.Len(t, inv.Items, 4*(2+6+3)+2)
	for _, item := range []string{
		`iptables-nft ip mangle rule PREROUTING "AWS, primary ENI"`, `iptables-legacy ip6 nat rule PREROUTING "AWS, CONNMARK"`,
		`iptables-nft ip6 nat rule PREROUTING -> AWS-CONNMARK-CHAIN-0`, "nftables table ip aws-cni", "ip rule IPv4 1024: fwmark 0x80/0x80 lookup 254",
	} {
		require.Contains(t, objects(inv.Items), item)
	}
	require.Equal(t, dirty, all())
	require.NoError(t, c.Remove(context.Background(), inv.Items))
	require.Equal(t, before, all())
	apply(t, c)
}
