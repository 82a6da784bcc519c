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

// When another program has written a file: then, or at no time yet, so that it does not stand
// still.
const (
	longAgo = "2020-01-01"
	notYet  = "2100-01-01"
)

// leave makes another program leave a file, which keeps the mode that it has.
func (n *node) leave(path, content, when string) {
	n.t.Helper()
	n.shell("mkdir -p " + filepath.Dir(path) + "; [ -e " + path + " ] || install /dev/null " + path)
	n.write(path, content)
	n.shell("touch -d " + when + " " + path)
}

// install installs a release of an agent's plugin, network and drop-in.
func (n *node) install(agent, release string) {
	n.t.Helper()
	require.NoError(n.t, os.WriteFile(filepath.Join(n.plugins, "test-cni"), []byte(pluginOf("release-"+release)), 0o755))
	require.NoError(n.t, os.WriteFile(n.conf, []byte(networkOf("release-"+release)), 0o644))
	n.ok("install-cni", "--plugins", n.plugins, "--cni-conf", n.conf, "--agent", agent)
	n.ok("sysctlfix", "--agent", agent, "--sysctl-config-file", "90-"+agent+".conf", "--sysctl", "net.ipv4.conf.lo.rp_filter="+release)
}

func pluginOf(version string) string { return plugin + "# " + version + "\n" }
func dropInOf(version string) string { return "# " + version + "\n" }

func networkOf(version string) string {
	return strings.Replace(conflist, `"test"`, strconv.Quote(version), 1)
}

// An uninstall leaves a file as others last left it: an upgrade that another program made
// meanwhile comes back, though an apply has written over it since. What an agent has left
// before is no upgrade, nor is what is still being written.
func TestPLAN6_AnUpgradeThatWasWrittenOverComesBack(t *testing.T) {
	const original, upgrade = "original", "upgrade"
	type leaving func(version, when string)
	upgraded := func(_ *node, _ string, leave leaving) { leave(upgrade, longAgo) }
	for name, story := range map[string]struct {
		meanwhile func(n *node, path string, leave leaving) // after the first apply of "ours"
		release   string                                    // that is applied then
		agents    []string                                  // by these, who are undone in this order
		back      string                                    // the version in the end
	}{
		"an upgrade":                  {upgraded, "1", []string{"ours"}, upgrade},
		"an upgrade, for two agents":  {upgraded, "1", []string{"theirs", "ours"}, upgrade},
		"undone the other way around": {upgraded, "1", []string{"ours", "theirs"}, upgrade},
		"half a file":                 {func(_ *node, _ string, leave leaving) { leave("half", notYet) }, "1", []string{"ours"}, original},
		"the original again": {func(n *node, _ string, leave leaving) {
			leave(upgrade, longAgo)
			n.install("ours", "1")
			leave(original, longAgo)
		}, "1", []string{"ours"}, original},
		"an older release of ours": {func(n *node, path string, _ leaving) {
			older := n.read(path)
			n.install("ours", "2")
			n.leave(path, older, longAgo)
		}, "2", []string{"ours"}, original},
	} {
		for path, content := range map[string]func(version string) string{
			"/opt/cni/bin/test-cni":             pluginOf,
			"/etc/cni/net.d/05-cilium.conflist": networkOf,
			"/etc/sysctl.d/90-ours.conf":        dropInOf,
		} {
			t.Run(filepath.Base(path)+"/"+name, func(t *testing.T) {
				n := newParallelNode(t)
				n.leave("/opt/cni/bin/loopback", plugin, longAgo)
				n.leave("/opt/cni/bin/test-cni", pluginOf(original), longAgo)
				n.leave("/etc/cni/net.d/05-cilium.conflist", networkOf(original), longAgo)
				n.leave("/etc/sysctl.d/90-ours.conf", dropInOf(original), longAgo)
				n.install("ours", "1")
				story.meanwhile(n, path, func(version, when string) { n.leave(path, content(version), when) })
				for _, agent := range story.agents {
					n.install(agent, story.release)
				}
				require.NotEqual(t, content(upgrade), n.read(path))
				said := ""
				for _, agent := range story.agents {
					said += n.ok("uninstall", "--agent", agent).stdout
				}
				require.Contains(t, said, path+", as another program left it")
				require.Equal(t, content(story.back), n.read(path))
			})
		}
	}
}

// A name may hold whatever the kernel allows in one, and is no pattern.
func TestSYS9_NamesOfLinksAreBytes(t *testing.T) {
	for _, link := range []string{"br[0]", "lxc[1]", "lxc*", "cilium_?", `a\b`, "cilium_\xff", "eth0.100"} {
		t.Run(strconv.QuoteToASCII(link), func(t *testing.T) {
			n := newParallelNode(t)
			n.shell(`ip link add name "$(printf '` + octal(link) + `')" type veth peer name peer`)
			dir := "/proc/sys/net/ipv4/conf/" + link
			n.write(dir+"/rp_filter", "1")
			defer n.asItWas()()
			n.ok("apply", "--only", "sysctl")
			if strings.HasPrefix(link, "lxc") || strings.HasPrefix(link, "cilium_") {
				require.Equal(t, "0\n", n.read(dir+"/rp_filter"))
			}
			n.ok("sysctlfix", "--agent", "wide", "--sysctl-config-file", "90-wide.conf",
				"--sysctl", "net.ipv4.conf.*.rp_filter=0", "--sysctl", "net.ipv4.conf.all.forwarding=1")
			require.Equal(t, "0\n1\n", n.read(dir+"/rp_filter")+n.read(dir+"/forwarding"))
			n.ok("check", "--only", "sysctl")
			n.ok("uninstall")
			n.ok("uninstall", "--agent", "wide")
			require.Equal(t, "1\n0\n", n.read(dir+"/rp_filter")+n.read(dir+"/forwarding"))
		})
	}
}

// octal escapes each byte for printf(1).
func octal(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		b.WriteString(`\` + strconv.FormatInt(int64(c)|0o1000, 8)[1:])
	}
	return b.String()
}

// Others' configurations come back, whatever bytes their names hold.
func TestCNI5_NamesOfConfigurationsAreBytes(t *testing.T) {
	for _, name := range []string{"12-\xff.conf", "12-a\nb.conf", "12-[a].conf", "12 a.conflist", `12-\"a.conflist`} {
		t.Run(strconv.QuoteToASCII(name), func(t *testing.T) {
			n := newParallelNode(t)
			n.others()
			path := "/etc/cni/net.d/" + name
			n.write(path, `{"cniVersion":"0.3.1","name":"strange","type":"other-cni"}`)
			defer n.asItWas()()
			args := []string{"install-cni", "--plugins", n.plugins, "--cni-conf", n.conf, "--cni-exclusive"}
			n.ok(args...)
			n.read(path + ".cilium_bak")
			require.Contains(t, n.ok(args...).stdout, "unchanged")
			n.ok("uninstall")
		})
	}
}

// Two keys may name one value of the kernel: it is one object, whichever agent uses which.
func TestSYS2_OneValueWithTwoNames(t *testing.T) {
	const one, other = "net.ipv4.ip_forward", "net.ipv4.conf.all.forwarding"
	set := func(agent, key, value string) []string {
		return []string{"apply", "--only", "sysctl", "--agent", agent, "--sysctl-conf-dir=", "--sysctl", key + "=" + value}
	}
	for _, keys := range [][2]string{{one, other}, {other, one}} {
		for _, order := range [][2]string{{"first", "second"}, {"second", "first"}} {
			t.Run(keys[0]+", undone "+order[0]+" first", func(t *testing.T) {
				n := newParallelNode(t)
				defer n.asItWas()()
				n.ok(set("first", keys[0], "1")...)
				require.Contains(t, n.exits(1, set("second", keys[1], "0")...).stderr, `agent "first" has 1, and this one wants 0`)
				n.ok(set("second", keys[1], "1")...)
				n.ok("uninstall", "--agent", order[0])
				require.Equal(t, "1\n", n.read(ipForward), "the other agent wants it")
				n.ok("uninstall", "--agent", order[1])
				require.Equal(t, "0\n", n.read(ipForward))
			})
		}
	}
}

// The kernel counts a neighbour's queue in bytes, and shows packets of them too: neither name
// loses what the other one says.
func TestSYS2_AQueueInPacketsAndBytes(t *testing.T) {
	const dir = "/proc/sys/net/ipv4/neigh/lo/"
	for _, key := range []string{"unres_qlen=7", "unres_qlen_bytes=54321"} {
		t.Run(key, func(t *testing.T) {
			n := newParallelNode(t)
			n.write(dir+"unres_qlen_bytes", "100001")
			defer n.asItWas()()
			n.ok("apply", "--only", "sysctl", "--sysctl-conf-dir=", "--sysctl", "net.ipv4.neigh.lo."+key)
			n.ok("uninstall")
			require.Equal(t, "100001\n", n.read(dir+"unres_qlen_bytes"))
		})
	}
}

// Agents with the same wishes come and go in any order: what one alone wanted goes with it, what
// others want stays as they want it, and at last the node is as it was.
func TestPLAN14_AgentsGoInAnyOrder(t *testing.T) {
	for _, order := range [][]string{{"a", "b", "c"}, {"a", "c", "b"}, {"b", "a", "c"}, {"b", "c", "a"}, {"c", "a", "b"}, {"c", "b", "a"}} {
		t.Run(strings.Join(order, ""), func(t *testing.T) {
			n := newParallelNode(t)
			defer n.asItWas()()
			run := func(command, agent string) []string {
				return []string{command, "--skip", "config", "--agent", agent, "--plugins", n.plugins, "--cni-conf", n.conf,
					"--sysctl-config-file", "90-" + agent + ".conf", "--sysctl", "net.ipv4.ip_forward=1", "--sysctl", "net.ipv4.conf.lo.rp_filter=2"}
			}
			for _, agent := range []string{"a", "b", "c"} {
				n.ok(run("apply", agent)...)
			}
			for i, gone := range order {
				n.ok("uninstall", "--agent", gone)
				for _, agent := range order[i+1:] {
					n.ok(run("check", agent)...)
				}
			}
		})
	}
}
