// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/rlimit"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

// noCgroup is not a cgroup2 directory: the tests leave the machine's own alone.
const noCgroup = "/nowhere"

// enter runs the test in namespaces of its own, and beside others, since most of its time it waits
// for the kernel. That is for tests in which nothing has to end with a file that is closed, such as
// a lock, a mount that is not busy, a bpf_link: a process that another test starts has the file too,
// until it executes its program.
func enter(t *testing.T, namespaces testns.Namespace) {
	t.Helper()
	t.Parallel()
	testns.Enter(t, namespaces)
}

// run runs a tool inside the test's namespaces and returns its output.
func run(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	require.NoError(t, err, "%s: %s", strings.Join(args, " "), out)
	return string(out)
}

// executable writes a program that the test executes. A process that another thread starts
// meanwhile would have the file open for writing until it executes its own program, and the
// kernel executes no such file.
func executable(t testing.TB, path string, content []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, content, 0o755)
	syscall.ForkLock.RUnlock()
	require.NoError(t, err)
}

// bpfDir returns the path of the test's own BPF file system.
func bpfDir(t testing.TB) string {
	t.Helper()
	dir := testns.TempDir(t)
	require.NoError(t, unix.Mount("bpf", dir, "bpf", 0, "mode=0700"))
	return dir
}

// Before Linux 5.11 maps and programs count as locked memory, and a process may have
// little. Without root the tests of both skip.
var _ = rlimit.RemoveMemlock()

// program loads a program that lets everything pass.
func program(t testing.TB, typ ebpf.ProgramType, name string, use ...*ebpf.Map) *ebpf.Program {
	t.Helper()
	verdict := int32(0) // TC_ACT_OK
	if typ == ebpf.XDP {
		verdict = 2 // XDP_PASS
	}
	var insns asm.Instructions
	for _, m := range use {
		insns = append(insns, asm.LoadMapPtr(asm.R1, m.FD()))
	}
	insns = append(insns, asm.Mov.Imm(asm.R0, verdict), asm.Return())
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: typ, Name: name, License: "Apache-2.0", Instructions: insns})
	require.NoError(t, err)
	t.Cleanup(func() { prog.Close() })
	return prog
}

func array(t testing.TB, name string) *ebpf.Map {
	t.Helper()
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, Name: name, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	require.NoError(t, err)
	t.Cleanup(func() { m.Close() })
	return m
}

func pinAt(t testing.TB, object interface{ Pin(string) error }, path ...string) string {
	t.Helper()
	full := filepath.Join(path...)
	require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o700))
	require.NoError(t, object.Pin(full))
	return full
}

// veth makes a pair of links.
func veth(t testing.TB, name, peer string) {
	t.Helper()
	run(t, "ip", "link", "add", "dev", name, "type", "veth", "peer", "name", peer)
}

func vethUp(t testing.TB, name, peer string) {
	t.Helper()
	veth(t, name, peer)
	ip(t, "link set dev "+name+" up", "link set dev "+peer+" up")
}

func index(t testing.TB, name string) int {
	t.Helper()
	l, err := netlink.LinkByName(name)
	require.NoError(t, err)
	return l.Attrs().Index
}

const (
	ingress = netlink.HANDLE_MIN_INGRESS
	egress  = netlink.HANDLE_MIN_EGRESS
)

// filter attaches a program as a tc filter of the given name.
func filter(t testing.TB, dev string, parent uint32, prio uint16, name string, prog *ebpf.Program) {
	t.Helper()
	require.NoError(t, netlink.FilterReplace(&netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{
			LinkIndex: index(t, dev), Parent: parent, Handle: 1, Protocol: unix.ETH_P_ALL, Priority: prio,
		},
		Fd: prog.FD(), Name: name, DirectAction: true,
	}))
}

func clsact(t testing.TB, dev string) {
	t.Helper()
	run(t, "tc", "qdisc", "add", "dev", dev, "clsact")
}

// listing returns the tools' listings of links' filters, without timers. With thousands of
// listings, each is one run of a tool, not one per link.
func listing(t testing.TB, devs ...string) string {
	t.Helper()
	var tc, ip strings.Builder
	for _, dev := range devs {
		fmt.Fprintf(&tc, "qdisc show dev %[1]s\nfilter show dev %[1]s ingress\nfilter show dev %[1]s egress\n", dev)
		fmt.Fprintf(&ip, "link show dev %s\n", dev)
	}
	return batch(t, tc.String(), "tc") + batch(t, ip.String(), "ip", "-o")
}

// batch runs a tool on commands, one per line.
func batch(t testing.TB, commands string, tool ...string) string {
	t.Helper()
	cmd := exec.Command(tool[0], append(tool[1:], "-batch", "-")...)
	cmd.Stdin = strings.NewReader(commands)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", commands, out)
	return string(out)
}

// everything returns the tools' listings of the whole namespace.
func everything(t testing.TB) string {
	t.Helper()
	links, err := netlink.LinkList()
	require.NoError(t, err)
	var devs []string
	for _, l := range links {
		devs = append(devs, l.Attrs().Name)
	}
	return listing(t, devs...)
}

// tree lists a directory with types, modes and contents, not crossing mounts.
func tree(t testing.TB, dir string) string {
	t.Helper()
	return run(t, "find", dir, "-mindepth", "1", "-printf", "%p %y %m %s %l\n")
}

func objects(items []cleanup.Item) []string {
	var out []string
	for _, item := range items {
		out = append(out, item.String())
	}
	return out
}

// inventory lists leftovers, and checks that listing changes nothing the tools can see.
func inventory(t testing.TB, c cleanup.Leftovers) *cleanup.Inventory {
	t.Helper()
	waitForLinks(t)
	before := everything(t)
	inv, err := c.Inventory(context.Background())
	require.NoError(t, err)
	require.Equal(t, before, everything(t))
	return inv
}

// apply applies and checks that nothing is left to do.
func apply(t testing.TB, c cleanup.Leftovers) {
	t.Helper()
	require.NoError(t, c.Apply(context.Background()))
	changes, err := c.Check(context.Background())
	require.NoError(t, err)
	require.Empty(t, changes)
}

// listed is an inventory that also may be of the machine itself.
func listed(t testing.TB, ctx context.Context, c cleanup.Leftovers) *cleanup.Inventory {
	t.Helper()
	inv, err := c.Inventory(ctx)
	require.NoError(t, err)
	return inv
}

// ours is Cilium's ownership without the host's paths.
func ours() cleanup.Ownership {
	own := cleanup.Cilium()
	own.StateDirs, own.PidFiles, own.Sockets, own.Mounts, own.Files, own.SetAside = nil, nil, nil, nil, nil, nil
	return own
}

// excepting returns Cilium's part of an ownership, with an exception for each path in one of
// the test's directories.
func excepting(own cleanup.Ownership) cleanup.Ownership {
	own.Agent = "cilium"
	except := func(kind, path string) {
		if strings.HasPrefix(path, os.TempDir()+"/") {
			own.Exceptions = append(own.Exceptions, cleanup.Exception{Kind: kind, Name: path})
		}
	}
	for _, file := range own.Files {
		except("file", file)
	}
	for _, dir := range own.StateDirs {
		except("directory", dir)
	}
	for _, m := range own.Mounts {
		except("mount", m.Path)
	}
	for _, pattern := range own.SetAside {
		except("cni-directory", filepath.Dir(pattern))
	}
	return own
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

// endpoints makes n endpoint links, each with a clsact and a filter, through one netlink
// handle.
func endpoints(t testing.TB, n int) {
	t.Helper()
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	require.NoError(t, err)
	defer h.Close()
	prog := program(t, ebpf.SchedCLS, "cil_from_contai")
	for i := range n {
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprintf("lxc%08x", i)}, PeerName: fmt.Sprintf("p%08x", i)}
		require.NoError(t, h.LinkAdd(veth))
		require.NoError(t, h.QdiscAdd(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: veth.Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}))
		require.NoError(t, h.FilterAdd(&netlink.BpfFilter{
			FilterAttrs: netlink.FilterAttrs{LinkIndex: veth.Index, Parent: ingress, Handle: 1, Protocol: 3, Priority: 1},
			Fd:          prog.FD(), Name: "cil_from_container-x", DirectAction: true,
		}))
	}
}

func linkCount(t testing.TB) int {
	t.Helper()
	links, err := netlink.LinkList()
	require.NoError(t, err)
	return len(links)
}
