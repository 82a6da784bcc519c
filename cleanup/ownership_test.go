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

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/cleanup"
)

var (
	_ bootstrap.Hosted = cleanup.Leftovers{}
)

// requireRefused requires that nothing is found or removed by an ownership that is not valid.
func requireRefused(t *testing.T, own cleanup.Ownership, want string) {
	t.Helper()
	l := cleanup.Leftovers{Ownership: own, Scope: cleanup.AllState}
	inv, err := l.Inventory(context.Background())
	require.ErrorContains(t, err, want)
	require.Empty(t, inv.Items)
	require.ErrorContains(t, l.Apply(context.Background()), want)
}

func TestCLN2_BadOwnershipRemovesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		own  cleanup.Ownership
		want string
	}{
		"empty program":      {cleanup.Ownership{Programs: []string{"cil_from_host", ""}}, `"" is not the name of a program`},
		"any filter":         {cleanup.Ownership{Filters: []string{"-{link}"}}, `"-{link}" is not the name of a program or a filter`},
		"any filter, spaced": {cleanup.Ownership{Filters: []string{" {link}._-"}}, `" {link}._-" is not the name of a program or a filter`},
		"empty rule":         {cleanup.Ownership{Links: []cleanup.LinkRule{{}}}, "it needs a name"},
		"kind alone":         {cleanup.Ownership{Links: []cleanup.LinkRule{{Kind: "veth"}}}, "it needs a name"},
		"rule's program":     {cleanup.Ownership{Links: []cleanup.LinkRule{{Name: "x", Programs: []string{""}}}}, `"" is not the name of a program`},
		"expression":         {cleanup.Ownership{Links: []cleanup.LinkRule{{Name: "("}}}, "missing closing"},
		"pin of the root":    {cleanup.Ownership{Pins: []string{""}}, `pin ""`},
		"pin dot":            {cleanup.Ownership{Pins: []string{"."}}, `pin "."`},
		"pin outside":        {cleanup.Ownership{Pins: []string{"../x"}}, `pin "../x"`},
		"pin above":          {cleanup.Ownership{Pins: []string{".."}}, `pin ".."`},
		"pin absolute":       {cleanup.Ownership{Pins: []string{"/sys/fs/bpf/x"}}, `pin "/sys/fs/bpf/x"`},
		"pin pattern":        {cleanup.Ownership{Pins: []string{"[x"}}, "syntax error in pattern"},
		"pin wild directory": {cleanup.Ownership{Pins: []string{"*/x"}}, "only the last element"},
		"root":               {cleanup.Ownership{StateDirs: []string{"/"}}, "refusing to empty the root"},
		"empty path":         {cleanup.Ownership{StateDirs: []string{""}}, "the path is empty"},
		"relative path":      {cleanup.Ownership{StateDirs: []string{"run"}}, "want an absolute path"},
	} {
		t.Run(name, func(t *testing.T) { requireRefused(t, c.own, c.want) })
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
		inv, err := cleanup.Leftovers{Ownership: own, Scope: cleanup.AllState}.Inventory(context.Background())
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
	kinds := []string{"link", "bridge", "chain", "comment of iptables", "ipset", "nftables table", "program", "pin", "CNI file", "sysctl file", "network", "folder", "path"}
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
	c := cleanup.Leftovers{Scope: cleanup.AllState}
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
		"mount":  func(o *cleanup.Ownership, path string) { o.Mounts = []cleanup.MountRule{{Path: path, Type: "bpf"}} },
		"folder": func(o *cleanup.Ownership, path string) { o.StateDirs = []string{path} },
		"file":   func(o *cleanup.Ownership, path string) { o.Files = []string{path} },
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
		cilium.Exceptions = []cleanup.Exception{{Kind: "cni-folder", Name: dir}, {Kind: "sysctl-folder", Name: dir}}
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
		own := cleanup.Ownership{Agent: "cilium", Files: []string{filepath.Join(dir, name)}, Exceptions: []cleanup.Exception{{Kind: "cni-folder", Name: dir}}}
		require.ErrorContains(t, own.Validate(), `only names of the agent "cilium" are searched for there: `, dir)
		own.Files, own.SetAside = nil, []string{filepath.Join(dir, "*.bak")}
		require.ErrorContains(t, own.Validate(), `only names of the agent "cilium" are searched for there: `, dir)
	}

	// Nor is what is the node's, if an agent is called so.
	called := func(agent, path string) cleanup.Ownership {
		dir := filepath.Dir(path)
		return cleanup.Ownership{Agent: agent, Exceptions: []cleanup.Exception{{Kind: "cni-folder", Name: dir}, {Kind: "sysctl-folder", Name: dir}}}
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
