// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bench_test

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/bench"
	"github.com/slipway-dev/slipway/internal/verify/programs"
)

var cilium = flag.Bool("cilium", false, "compare with Cilium's own cleanup too, which is built the first time (3 CPU-minutes)")

const bpfRoot = "/sys/fs/bpf"

// The cost of removing many endpoint links, each with its clsact, filter and routes:
// cleanup removes all of it, deletion one by one only the links. The stall is the longest
// time that another process waits for the kernel's RTNL lock meanwhile. It is less
// meaningful on a busy machine: nice -n -10 helps.
func BenchmarkCleanup(b *testing.B) {
	for _, links := range []int{200, 1000, 5000} {
		b.Run(fmt.Sprintf("links=%d", links), func(b *testing.B) { benchmarkCleanup(b, links) })
	}
}

func benchmarkCleanup(b *testing.B, links int) {
	var others []way
	if *cilium {
		others = append(others, way{"cilium", ciliumCleanup(b)})
	}
	testns.Enter(b, testns.Mount|testns.Net)
	hideMachine(b)
	e := newEndpoints(b)
	m, ours := bench.Measured{}, []way{{bench.Ours, removeAll}}
	others = append(others, way{"one-by-one", e.deleteEach})
	for b.Loop() {
		for _, way := range append(ours, others...) {
			e.add(links)
			require.Equal(b, links, e.count(), way.name)
			idle := stall(b)
			<-time.After(time.Second)
			idleStall, waited, begin := idle(), stall(b), time.Now()
			way.remove(b)
			took, stalled := time.Since(begin), waited()
			left := e.count()
			m.Add(way.name, "stall-ms", ms(stalled))
			m.Add(way.name, "s", took.Seconds())
			if way.name == bench.Ours {
				require.Zero(b, left)
				m.Add(way.name, "ms/link", ms(took)/float64(links))
				m.Add(way.name, "idle-stall-ms", ms(idleStall))
			} else {
				m.Add(way.name, "links-left", float64(left))
			}
			e.deleteEach(b)
		}
		others = nil // once is enough for slow ones
	}
	m.Report(b)
	b.ReportMetric(slices.Max(m["stall-ms"][bench.Ours]), "max-stall-ms")
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// way is a way to remove the links.
type way struct {
	name   string
	remove func(b *testing.B)
}

// removeAll runs a whole cleanup.
func removeAll(b *testing.B) {
	c := cleanup.Leftovers{Ownership: cleanup.Cilium(), Scope: "all-state", BPFRoots: []string{bpfRoot}, CgroupRoot: "/nowhere"}
	inventory, err := c.Inventory(b.Context())
	require.NoError(b, err)
	require.NoError(b, c.Remove(b.Context(), inventory.Items))
}

func ciliumCleanup(b *testing.B) func(*testing.B) {
	program, err := programs.Program{Package: "./internal/verify/kubernetes/realkube/testdata/cilium"}.Build(b.Context())
	require.NoError(b, err)
	return func(b *testing.B) {
		out, err := exec.CommandContext(b.Context(), program, "post-uninstall-cleanup", "-f", "--all-state").CombinedOutput()
		require.NoError(b, err, string(out))
	}
}

// hideMachine mounts over everything of the machine that a cleanup could remove.
func hideMachine(b *testing.B) {
	for path, fstype := range map[string]string{"/run": "tmpfs", "/var/lib": "tmpfs", "/etc/cni": "tmpfs", "/opt/cni": "tmpfs", bpfRoot: "bpf"} {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			continue
		}
		require.NoError(b, unix.Mount(fstype, path, fstype, 0, ""), path)
	}
}

// endpoints makes links as an agent makes them: a veth that is up, with its peer in
// another namespace, a clsact with a filter, and routes.
type endpoints struct {
	b    *testing.B
	h    *netlink.Handle
	prog *ebpf.Program
	pods *os.Process // in the other namespace
}

func newEndpoints(b *testing.B) endpoints {
	h, err := netlink.NewHandle()
	require.NoError(b, err)
	b.Cleanup(h.Close)
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SchedCLS, Name: "cil_from_contai", License: "Apache-2.0",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	require.NoError(b, err)
	b.Cleanup(func() { _ = prog.Close() })
	pods := exec.CommandContext(b.Context(), "sleep", "infinity")
	pods.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	require.NoError(b, pods.Start())
	b.Cleanup(func() { _ = pods.Process.Kill(); _ = pods.Wait() })
	return endpoints{b, h, prog, pods.Process}
}

func (e endpoints) add(n int) {
	for i := range n {
		require.NoError(e.b, e.addOne(i), "endpoint %d", i)
	}
}

func (e endpoints) addOne(i int) error {
	veth := &netlink.Veth{
		// Five digits, as Cilium's cleanup looks for names of eight characters.
		LinkAttrs:     netlink.LinkAttrs{Name: fmt.Sprintf("lxc%05x", i)},
		PeerName:      fmt.Sprintf("p%05x", i),
		PeerNamespace: netlink.NsPid(e.pods.Pid),
	}
	if err := e.h.LinkAdd(veth); err != nil {
		return fmt.Errorf("add link: %w", err)
	}
	if err := e.h.LinkSetUp(veth); err != nil {
		return fmt.Errorf("set link up: %w", err)
	}
	for _, dst := range []*net.IPNet{
		{IP: net.IPv4(10, 0, byte(i>>8), byte(i)).To4(), Mask: net.CIDRMask(32, 32)},
		{IP: net.IP{0xfd, 14: byte(i >> 8), 15: byte(i)}, Mask: net.CIDRMask(128, 128)},
	} {
		if err := e.h.RouteAdd(&netlink.Route{LinkIndex: veth.Index, Dst: dst, Scope: netlink.SCOPE_LINK}); err != nil {
			return fmt.Errorf("add route: %w", err)
		}
	}
	if err := e.h.QdiscAdd(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: veth.Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}); err != nil {
		return fmt.Errorf("add clsact: %w", err)
	}
	if err := e.h.FilterAdd(&netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: veth.Index, Parent: netlink.HANDLE_MIN_INGRESS, Handle: 1, Protocol: unix.ETH_P_ALL, Priority: 1},
		Fd:          e.prog.FD(), Name: "cil_from_container-lxc", DirectAction: true,
	}); err != nil {
		return fmt.Errorf("add filter: %w", err)
	}
	return nil
}

func (e endpoints) list() (own []netlink.Link) {
	all, err := e.h.LinkList()
	require.NoError(e.b, err)
	for _, l := range all {
		if strings.HasPrefix(l.Attrs().Name, "lxc") {
			own = append(own, l)
		}
	}
	return own
}

func (e endpoints) count() int { return len(e.list()) }

func (e endpoints) deleteEach(b *testing.B) {
	for _, l := range e.list() {
		require.NoError(b, e.h.LinkDel(l), l.Attrs().Name)
	}
}

// stall measures how long another user of the RTNL lock waits at most, until the
// returned function is called. Its request is for a link that does not exist.
func stall(b *testing.B) (longest func() time.Duration) {
	stop, result := make(chan struct{}), make(chan time.Duration)
	go func() {
		var most time.Duration
		defer func() { result <- most }()
		missing := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Index: 1 << 30}}
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			begin := time.Now()
			if err := netlink.LinkDel(missing); !errors.Is(err, unix.ENODEV) {
				b.Errorf("delete a link that does not exist: %v", err)
			}
			most = max(most, time.Since(begin))
		}
	}()
	return func() time.Duration {
		close(stop)
		return <-result
	}
}
