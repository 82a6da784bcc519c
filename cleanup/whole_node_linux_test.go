// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/cleanup"
)

// The tests of this file make one object of every kind that an agent leaves on a throw-away
// node, each beside a foreign twin, and examine the node with an administrator's tools before,
// between and after.

// leftover is one kind of object that an agent leaves.
type leftover struct {
	kind string
	want string // the inventory's name for it, or its beginning
	bpf  bool   // it belongs to the smaller scope
	twin func(*testing.T)
	make func(*testing.T)
}

// nodeOwnership is Cilium's whole ownership, with a real node's paths.
func nodeOwnership() cleanup.Ownership {
	own, more := cleanup.Cilium(), cleanup.CiliumOnRequest()
	own.NetNS, own.XFRM = more.NetNS, more.XFRM
	eni := cleanup.CiliumENI(4, 10, 11)
	own.Rules, own.Routes = append(own.Rules, eni.Rules...), append(own.Routes, eni.Routes...)
	return own
}

func nodeCleanup(scope string) cleanup.Leftovers {
	return cleanup.Leftovers{Ownership: nodeOwnership(), Scope: scope, CgroupRoot: "/sys/fs/cgroup"}
}

// sight is the tools' output for a node, by subject.
type sight map[string]string

// sightOf looks at the whole node.
func sightOf(t testing.TB) sight {
	t.Helper()
	out := sight{
		"links and tc":  everything(t),
		"routes, rules": routing(t),
		"xfrm":          xfrm(t),
		"netns":         run(t, "ip", "netns", "list") + run(t, "ip", "-n", "other", "-o", "link"),
		"nft":           run(t, "nft", "-s", "list", "ruleset"), // without packet counters, which change
		"ipset":         run(t, "ipset", "list"),
		"hooks":         strings.Join(sorted(hooks(t, ebpf.AttachTCXIngress, ebpf.AttachTCXEgress)), "\n"),
		"cgroup":        bpftool(t, "cgroup", "tree", "/sys/fs/cgroup") + strings.Join(attached(t, "/sys/fs/cgroup"), "\n"), // bpftool shows none before Linux 6.0
		"bpf net":       bpftool(t, "net", "show"),
		"mounts":        run(t, "awk", `$5 ~ "^/(run|sys|etc|opt|var)(/|$)" { print $5, $9 }`, "/proc/thread-self/mountinfo"),
		"pins":          run(t, "find", "/sys/fs/bpf", "-printf", "%p %y %m\n"),
	}
	where := []string{"find", "/etc/cni", "/etc/sysctl.d", "/opt", "/run", "/srv", "/var", "-xdev"}
	files := run(t, append(slices.Clone(where), "-printf", "%p %y %m %u %l\n")...) +
		run(t, append(slices.Clone(where), "-type", "f", "-not", "-path", "/run/netns/*", "-exec", "sha256sum", "{}", "+")...)
	out["files"] = strings.Join(sorted(strings.Split(files, "\n")), "\n")
	for _, tool := range []string{"iptables-nft", "ip6tables-nft", "iptables-legacy", "ip6tables-legacy"} {
		out[tool] = saved(t, tool)
	}
	return out
}

// requireSame compares the given subjects, or all.
func requireSame(t testing.TB, want, have sight, subjects ...string) {
	t.Helper()
	if len(subjects) == 0 {
		subjects = slices.Sorted(maps.Keys(want))
	}
	for _, subject := range subjects {
		require.Equal(t, want[subject], have[subject], subject)
	}
}

// onNode calls f on the test's own node.
func onNode(t *testing.T, f func(context.Context)) {
	t.Helper()
	requireTools(t, "bpftool", "iptables-nft", "iptables-legacy", "nft", "ipset")
	node := bootstraptest.NewNode(t)
	require.NoError(t, node.Do(t.Context(), func(ctx context.Context) error {
		require.NoError(t, unix.Mount("bpf", "/sys/fs/bpf", "bpf", 0, "mode=0700"))
		f(ctx)
		return nil
	}))
}

// makeAll makes the twins, then our own objects, and returns what the tools report after
// each.
func makeAll(t *testing.T, all []leftover) (clean, dirty sight) {
	t.Helper()
	for _, l := range all {
		if l.twin != nil {
			l.twin(t)
		}
	}
	neighbours(t)
	waitForLinks(t)
	waitFor(t, "local fd09::1 dev eth0", "ip", "-6", "route", "show", "table", "local")
	clean = sightOf(t)
	for _, l := range all {
		l.make(t)
	}
	waitForLinks(t)
	require.Empty(t, run(t, "ip", "-6", "-o", "address", "show", "scope", "link"), "an address of the kernel's own gets its route up to two seconds later")
	return clean, sightOf(t)
}

// waitFor runs a tool until it prints a text, because the kernel assigns addresses with a
// delay.
func waitFor(t testing.TB, want string, args ...string) {
	t.Helper()
	waitUntil(t, func(said string) bool { return strings.Contains(said, want) }, args...)
}

// waitForLinks waits until the state of each link that is up matches its carrier. The kernel
// checks carriers once a second: until then, the tools' output for links, qdiscs and routes is
// about to change.
func waitForLinks(t testing.TB) {
	t.Helper()
	waitUntil(t, settled, "ip", "-o", "-d", "link", "show", "up")
}

// settled reports whether no link in ip's detailed listing is about to change its state.
func settled(links string) bool {
	for line := range strings.Lines(links) {
		want := "state UP "
		switch {
		case !strings.Contains(line, "LOWER_UP"):
			want = "DOWN " // or LOWERLAYERDOWN
		case !strings.Contains(line, " veth "):
			want = "state U" // UP or, of a kind whose carrier never changes, UNKNOWN
		}
		if !strings.Contains(line, want) {
			return false
		}
	}
	return true
}

// waitUntil runs a tool until isEnough accepts its output.
func waitUntil(t testing.TB, isEnough func(said string) bool, args ...string) {
	t.Helper()
	said := ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if said = run(t, args...); isEnough(said) {
			return
		}
	}
	require.True(t, isEnough(said), said)
}

// missing returns the leftovers that an inventory does not list.
func missing(all []leftover, inv *cleanup.Inventory) (out []string) {
	for _, l := range all {
		listed := slices.ContainsFunc(inv.Items, func(item cleanup.Item) bool { return strings.HasPrefix(item.String(), l.want) })
		if !listed {
			out = append(out, l.kind+": "+l.want)
		}
	}
	return out
}

func TestCLN2_DirtyNode(t *testing.T) {
	onNode(t, func(ctx context.Context) {
		all := leftovers(t)
		require.GreaterOrEqual(t, len(all), 25)
		clean, dirty := makeAll(t, all)
		for subject := range clean {
			if subject == "hooks" && !hasTCX(t) {
				continue // there are none
			}
			require.NotEqual(t, clean[subject], dirty[subject], subject)
		}
		c := nodeCleanup("all-state")

		first := listed(t, ctx, c)
		require.Empty(t, missing(all, first))
		require.Subset(t, append(ofKind("route", first.Left), ofKind("ip rule", first.Left)...), []string{ // others' in the agent's tables
			"10.6.0.0/16 via 10.9.0.2 dev eth0 table 2004", "10.6.0.0/16 dev eth0 table 2005 metric 7", "fd06::/64 dev eth0 table 2005 metric 1024",
			"local 10.8.0.0/16 dev lo table 2004", "IPv4 101: fwmark 0x200/0xfff lookup 2004", "IPv4 103: from 10.9.0.0/24 fwmark 0x200/0xf00 lookup 2004",
			"IPv4 104: not fwmark 0x200/0xf00 lookup 2004", "IPv6 106: fwmark 0xa00/0xf00 lookup 2005", "IPv6 107: fwmark 0x200/0xf00 lookup 2004",
		})
		second := listed(t, ctx, c)
		require.Equal(t, first.Items, second.Items)
		require.Equal(t, first.Left, second.Left)
		requireSame(t, dirty, sightOf(t)) // listing changes nothing

		var removed []string
		c.Progress = func(done, total int, item string, err error) {
			require.NoError(t, err, item)
			removed = append(removed, item)
			require.Equal(t, len(removed), done)
			require.Equal(t, len(second.Items), total)
		}
		require.NoError(t, c.Remove(ctx, second.Items))
		c.Progress = nil
		require.ElementsMatch(t, objects(second.Items), removed, "exactly the printed items were removed")
		requireSame(t, clean, sightOf(t))
		require.Equal(t, twinPackets, pinnedValue(t), "the twins work")

		left := listed(t, ctx, c)
		require.Empty(t, objects(left.Items))
		require.NoError(t, c.Remove(ctx, second.Items), "already gone is success")
		t.Logf("%d kinds of leftovers, %d items, %d left as they are", len(all), len(second.Items), len(left.Left))
	})
}

// The smaller scope takes programs and pins, and nothing else.
func TestCLN8_DirtyNodeBPFState(t *testing.T) {
	onNode(t, func(ctx context.Context) {
		all := leftovers(t)
		clean, dirty := makeAll(t, all)
		c := nodeCleanup("bpf-state")
		inv := listed(t, ctx, c)
		bpf := slices.DeleteFunc(slices.Clone(all), func(l leftover) bool { return !l.bpf })
		require.Empty(t, missing(bpf, inv))
		require.NoError(t, c.Remove(ctx, inv.Items))
		now := sightOf(t)
		requireSame(t, clean, now, "hooks", "cgroup", "pins")
		requireSame(t, dirty, now, "routes, rules", "xfrm", "netns", "nft", "ipset", "mounts", "files",
			"iptables-nft", "ip6tables-nft", "iptables-legacy", "ip6tables-legacy")
		left := listed(t, ctx, c)
		require.Empty(t, objects(left.Items))
	})
}
