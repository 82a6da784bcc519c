// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/cleanup"
)

var (
	_ bootstrap.Hosted = cleanup.Leftovers{}
)

// A rule that would own other owners' objects by mistake, nothing or everything is an error
// before anything is listed or removed: in YAML, by what the error says.
func TestCLN2_SEC9_OwnershipThatIsRefused(t *testing.T) {
	const others, value, table = "of other owners", "want a value and a mask", "want a table, a type and a destination"
	for want, texts := range map[string][]string{
		`"" is not the name of a program`:                       {"programs: [cil_from_host, '']", "links: [{name: x, programs: ['']}]"},
		`"-{link}" is not the name of a program or a filter`:    {"filters: ['-{link}']"},
		`" {link}._-" is not the name of a program or a filter`: {"filters: [' {link}._-']"},
		"it needs a name": {"links: [{}]", "links: [{kind: veth}]"},
		"missing closing": {"links: [{name: (}]"},
		"want a clean path below the BPF file system's root":        {"pins: ['']", "pins: [.]", "pins: [../x]", "pins: [..]", "pins: [/sys/fs/bpf/x]"},
		"syntax error in pattern":                                   {"pins: ['[x']", "netNS: ['a[x']"},
		"only the last element":                                     {"pins: ['*/x']"},
		"refusing to empty the root":                                {"stateDirs: [/]"},
		"the path is empty":                                         {"stateDirs: ['']"},
		"state directory run: want an absolute path":                {"stateDirs: [run]"},
		"an empty prefix":                                           {"chainPrefixes: [CILIUM_, '']", "ipsetPrefixes: ['']"},
		`mount "run": want an absolute path`:                        {"mounts: [{path: run, type: bpf}]"},
		"mount /run/x: the type of the file system is missing":      {"mounts: [{path: /run/x}]"},
		"the root of the file system":                               {"mounts: [{path: /, type: ext4}]"},
		`file "": want an absolute path`:                            {"files: ['']"},
		"want a path without ..":                                    {"files: [/etc/../x]", "files: [/etc/]"},
		"an asterisk and a suffix":                                  {"setAside: [/etc/cni/net.d/*]", "setAside: [/etc/cni/net.d]", "setAside: ['/etc/cni/net.d/*.[ab]']"},
		"configurations set aside \"*.bak\": want an absolute path": {"setAside: ['*.bak']"},
		"want a name, or a pattern that starts with a part of one":  {"netNS: ['']", "netNS: [cni-*, '*']", "netNS: ['?x']", "netNS: ['[a-z]*']", "netNS: [x/../y]", "netNS: [..]"},

		table:                                 {"routes: [{}]", "routes: [{table: 7, dst: default}]", "routes: [{table: 7, type: unicast}]", "routes: [{type: any, dst: any, protocol: 80}]"},
		`type "sink" is unknown`:              {"routes: [{table: 7, type: sink, dst: default}]"},
		`type "multicast" is unknown`:         {"routes: [{table: 7, type: multicast, dst: default}]"},
		"ParsePrefix":                         {"routes: [{table: 7, type: unicast, dst: all}]", "rules: [{table: 7, from: any}]"},
		"is not the name of a link":           {"routes: [{table: 7, type: unicast, dst: any, link: tun*/}]", "routes: [{table: 7, type: unicast, dst: any, link: a234567890123456}]"},
		"gateway: ParseAddr":                  {"routes: [{table: 7, type: unicast, dst: any, gateway: 10.0.0.0/8}]"},
		"without a zone":                      {"routes: [{table: 7, type: unicast, dst: any, gateway: 'fe80::1%eth0'}]"},
		"no IPv6 route has an IPv4 gateway":   {"routes: [{table: 7, type: unicast, dst: 'fd00::/64', gateway: 10.0.0.1}]"},
		"leads through no link or gateway":    {"routes: [{table: 7, type: blackhole, dst: any, gateway: 10.0.0.1}]", "routes: [{table: 7, type: blackhole, dst: any, link: tun0}]"},
		"want a mark or a prefix":             {"rules: [{table: 7, not: true, priority: 5}]"},
		"rules for every packet":              {"rules: [{table: 7, from: 0.0.0.0/0}]", "rules: [{table: 7, to: '::/0'}]"},
		"of both families":                    {"rules: [{table: 7, from: 10.0.0.0/8, to: 'fd00::/8'}]"},
		"unmarked packets":                    {"rules: [{table: 1, mark: {mask: 0xf00}}]"},
		"outside of the mask":                 {"rules: [{table: 1, mark: {value: 0x1200, mask: 0xf00}}]", "xfrm: [{mark: {value: 0xd00, mask: 0x100}}]"},
		"xfrm: mark 0x0/0x0":                  {"xfrm: [{}]"},
		"want the masks that are written":     {"xfrm: [{mark: {value: 0xd00, mask: 0xf00}}]"},
		"mask 0x300 does not include that of": {"xfrm: [{mark: {value: 0xd00, mask: 0xf00}, masks: [0xf00, 0x300]}]"},
		"want a table":                        {"rules: [{mark: {value: 1, mask: 1}}]", "rules: [{priority: 5, from: 10.0.0.0/8}]"},
		value: {
			"rules: [{table: 2004}]", "rules: [{table: 1, mark: {value: 1}}]", "rules: [{table: 7, protocol: 2}]", "rules: [{table: 7, priority: 5, mark: {value: 1}}]",
		},
		others: {
			"routes: [{table: 254, type: unicast, dst: default}]",
			"routes: [{table: 255, type: local, dst: host, protocol: 2}]", // addresses
			"routes: [{table: 254, type: blackhole, dst: host}]",
			"routes: [{table: 254, type: any, dst: any, link: any, gateway: any}]",
			"routes: [{table: 255, type: any, dst: any, link: any, gateway: any, protocol: 2}]",
			"routes: [{table: 254, type: unicast, dst: any, link: any, gateway: any, protocol: 4}]",     // static ones
			"routes: [{table: 254, type: unicast, dst: any, link: enp0s3, gateway: any, protocol: 12}]", // BIRD's
			"routes: [{table: 254, type: unicast, dst: any, link: lo, protocol: 12}]",
			"routes: [{table: 254, type: blackhole, dst: any, protocol: 4}]",
			"routes: [{table: 254, type: unreachable, dst: network, protocol: 2}]",
			"routes: [{table: 254, type: unicast, dst: network, link: any, protocol: 2}]",
			"rules: [{table: 254, priority: 32766}]",
			"rules: [{table: 254, to: network, protocol: 2}]",
			"rules: [{table: 254, from: 10.0.0.0/8}]",
		},

		`family "" is not one of`:                                    {"nfTables: [{name: acme}]"},
		`family "ipv4" is not one of`:                                {"nfTables: [{family: ipv4, name: acme}]"},
		"want a name of 1 to":                                        {"nfTables: [{family: ip}]"},
		"would match the nftables table nat, which is the node's":    {"nfTables: [{family: ip6, name: nat}]"},
		"would match the nftables table filter, which is the node's": {"nfTables: [{family: inet, name: filter}]"},
	} {
		for _, text := range texts {
			var own cleanup.Ownership
			require.NoError(t, yaml.Unmarshal([]byte(text), &own))
			l := cleanup.Leftovers{Ownership: own, Scope: "all-state"}
			inv, err := l.Inventory(context.Background())
			require.ErrorContains(t, err, want, text)
			require.ErrorContains(t, err, "cleanup: ", text)
			require.Empty(t, inv.Items)
			require.ErrorContains(t, l.Apply(context.Background()), want, text)
		}
	}
}

// A rule that would match the node's own objects, or those of most nodes, is refused before
// anything is listed.
func TestSEC9_OwnershipOfTheNodesOwn(t *testing.T) {
	for _, name := range []string{".*", "lo", "eth0", "eth.*", "[a-z]+", "e.*", "lo|cilium_host", "(?i)ETH0", "ens3", "w.+"} {
		own := cleanup.Ownership{Links: []cleanup.LinkRule{{Name: name, Kind: "veth", Programs: []string{"acme"}}}}
		require.ErrorContains(t, own.Validate(), "which is the node's", name)
	}
	for _, dir := range []string{
		"/etc", "/usr", "/var", "/run", "/opt", "/tmp", "/etc/", "/etc/cni", "/etc/cni/net.d", "/opt/cni", "/opt/cni/bin", "/usr/bin", "/var/lib", "/var/run",
		"/var/lib/kubelet", "/var/run/containerd", "/proc", "/proc/sys/net", "/sys/fs/bpf", "/dev/shm", "/anything", "/run/../etc",
	} {
		require.ErrorContains(t, cleanup.Ownership{StateDirs: []string{dir}}.Validate(), "cleanup: ownership: stateDirs: ", dir)
	}
	for _, point := range []string{"/proc", "/sys", "/dev", "/run", "/sys/fs/bpf", "/sys/fs/cgroup", "/dev/pts", "/boot", "/var/lib", "/run/netns"} {
		own := cleanup.Ownership{Mounts: []cleanup.MountRule{{Path: point, Type: "tmpfs"}}}
		require.ErrorContains(t, own.Validate(), "cleanup: ownership: mounts: ", point)
	}
	for name, own := range map[string]cleanup.Ownership{
		"file of the kernel": {Files: []string{"/proc/sys/net/ipv4/ip_forward"}},
		"directory as file":  {Files: []string{"/etc"}},
		"all pins":           {Pins: []string{"*"}},
		"all pins in tc":     {Pins: []string{"tc/globals/*"}},
		"everybody's pins":   {Pins: []string{"tc"}},
		"built-in chain":     {ChainPrefixes: []string{"IN"}},
	} {
		require.ErrorContains(t, own.Validate(), "cleanup: ownership: ", name)
		inv, err := cleanup.Leftovers{Ownership: own, Scope: "all-state"}.Inventory(context.Background())
		require.EqualError(t, own.Validate(), err.Error(), name)
		require.Empty(t, inv.Items)
	}
	for _, own := range []cleanup.Ownership{cleanup.Cilium(), cleanup.CiliumOnRequest(), {}} {
		require.NoError(t, own.Validate())
	}
	require.NoError(t, cleanup.Cilium().Moved("/etc/cni/net.d", "/etc/kubernetes/cni/net.d").Validate())
}

// A rule for links must match the whole name.
func TestSEC9_EveryLineOfTheProtectedNamesCounts(t *testing.T) {
	table, err := os.ReadFile("protected.txt")
	require.NoError(t, err)
	kinds := []string{"link", "bridge", "chain", "comment of iptables", "ipset", "nftables table", "program", "pin", "CNI file", "sysctl file", "network", "directory", "path"}
	lines := 0
	for line := range strings.Lines(string(table)) {
		columns := strings.Split(strings.TrimSpace(line), "\t")
		if strings.HasPrefix(line, "#") || len(columns[0]) == 0 {
			continue
		}
		require.Len(t, columns, 4, line)
		lines++
		require.Contains(t, kinds, columns[1], line)
	}
	require.Greater(t, lines, 100)
}

func TestSEC9_PatternsAreAnchored(t *testing.T) {
	links := cleanup.Things{}
	for _, name := range []string{"acme1", "acme2x", "xacme1", "acme12", "q", "aq", "qq"} {
		links.Links = append(links.Links, cleanup.Link{Name: name, Kind: "veth"})
	}
	for pattern, want := range map[string][]string{"acme[0-9]": {"acme1"}, "q|zz": {"q"}} {
		owned, err := cleanup.Ownership{Links: []cleanup.LinkRule{{Name: pattern}}}.Of(links)
		require.NoError(t, err)
		var names []string
		for _, link := range owned.Links {
			names = append(names, link.Name)
		}
		require.Equal(t, want, names, pattern)
	}
}

func TestCLN2_ZeroOwnershipOwnsNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		return
	}
	c := cleanup.Leftovers{Scope: "all-state"}
	inv, err := c.Inventory(context.Background())
	require.NoError(t, err)
	require.Empty(t, inv.Items)
	require.Empty(t, inv.Left)
	require.NoError(t, c.Remove(context.Background(), []cleanup.Item{}))
}

// An exception applies to its kind and name, and neither to another kind nor to another place.
func TestSEC9_AnExceptionIsForItsKindAndName(t *testing.T) {
	const here, elsewhere = "/srv/acme/x", "/srv/acme/y"
	own := map[string]func(o *cleanup.Ownership, path string){
		"mount":     func(o *cleanup.Ownership, path string) { o.Mounts = []cleanup.MountRule{{Path: path, Type: "bpf"}} },
		"directory": func(o *cleanup.Ownership, path string) { o.StateDirs = []string{path} },
		"file":      func(o *cleanup.Ownership, path string) { o.Files = []string{path} },
	}
	for kind, set := range own {
		for excepted := range own {
			for _, path := range []string{here, elsewhere} {
				o := cleanup.Ownership{Agent: "acme", Exceptions: []cleanup.Exception{{Kind: excepted, Name: here}}}
				set(&o, path)
				err := o.Validate()
				require.Equal(t, kind == excepted && path == here, err == nil, "%s %s, excepted as a %s: %v", kind, path, excepted, err)
			}
		}
	}
}

// Wherever a runtime has its plugins and configurations, the agent's names are found there,
// and no other name and no directory is.
func TestCLN12_ADirectoryThatIsSearchedIsNotOwned(t *testing.T) {
	for _, dir := range []string{
		"/var/lib/rancher/k3s/data/cni", "/var/lib/rancher/k3s/data/7c2f9a/bin", "/usr/lib/cni", "/usr/libexec/cni", "/usr/share/plugins",
		"/var/lib/kubelet/plugins", "/var/lib/calico/bin", "/var/run/containerd/plugins", "/etc/kubernetes/plugins", "/cni", "/etc", "/usr/bin",
	} {
		cilium := cleanup.Cilium().Moved("/opt/cni/bin", dir).Moved("/etc/cni/net.d", dir).Moved("/etc/sysctl.d", dir)
		cilium.Exceptions = []cleanup.Exception{{Kind: "cni-directory", Name: dir}, {Kind: "sysctl-directory", Name: dir}}
		require.NoError(t, cilium.Validate(), dir)

		for _, theirs := range []string{"loopback", "calico-ipam", "10-calico.conflist"} {
			own := cilium
			own.Files = []string{filepath.Join(dir, theirs)}
			require.Error(t, own.Validate(), "%s in %s", theirs, dir)
		}
		own := cilium
		own.StateDirs = []string{dir}
		require.ErrorContains(t, own.Validate(), "cleanup: ownership: stateDirs: ", dir)
	}
	for dir, name := range map[string]string{"/etc/ssh": "sshd_config", "/usr/bin": "sh", "/var/lib/kubelet": "config.yaml"} {
		own := cleanup.Ownership{Agent: "cilium", Files: []string{filepath.Join(dir, name)}, Exceptions: []cleanup.Exception{{Kind: "cni-directory", Name: dir}}}
		require.ErrorContains(t, own.Validate(), `only names of the agent "cilium" are searched for there: `, dir)
		own.Files, own.SetAside = nil, []string{filepath.Join(dir, "*.bak")}
		require.ErrorContains(t, own.Validate(), `only names of the agent "cilium" are searched for there: `, dir)
	}

	// Nor is what is the node's, if an agent is called so.
	called := func(agent, path string) cleanup.Ownership {
		dir := filepath.Dir(path)
		return cleanup.Ownership{Agent: agent, Exceptions: []cleanup.Exception{{Kind: "cni-directory", Name: dir}, {Kind: "sysctl-directory", Name: dir}}}
	}
	for path, agent := range map[string]string{"/etc/passwd": "passwd", "/etc/pam.conf": "pam", "/etc/hosts": "hosts"} {
		own := called(agent, path)
		own.Files = []string{path}
		require.ErrorContains(t, own.Validate(), "only names of the agent", path)
	}
	for path, agent := range map[string]string{"/etc/ssh": "ssh", "/etc/kubernetes": "kubernetes", "/etc/acme": "acme", "/var/lib/kubelet/pods": "pods"} {
		own := called(agent, path)
		own.StateDirs = []string{path}
		require.ErrorContains(t, own.Validate(), "only names of the agent", path)
	}
}
