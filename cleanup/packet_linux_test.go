// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

// tailCaller loads a program that, like an agent's, passes a packet only if the program that it
// calls through the first slot of calls does.
func tailCaller(t testing.TB, typ ebpf.ProgramType, name string, calls *ebpf.Map) *ebpf.Program {
	t.Helper()
	drop := int32(2) // TC_ACT_SHOT
	if typ == ebpf.XDP {
		drop = 1 // XDP_DROP
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: typ, Name: name, License: "Apache-2.0",
		Instructions: asm.Instructions{
			asm.LoadMapPtr(asm.R2, calls.FD()),
			asm.Mov.Imm(asm.R3, 0),
			asm.FnTailCall.Call(),
			asm.Mov.Imm(asm.R0, drop),
			asm.Return(),
		},
	})
	require.NoError(t, err)
	return prog
}

// pinnedCalls makes a table of programs that only its pin keeps, as after the agent's end, and
// programs that call through it.
func pinnedCalls(t testing.TB, typ ebpf.ProgramType, pin string, names ...string) []*ebpf.Program {
	t.Helper()
	calls, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.ProgramArray, Name: "cilium_calls", KeySize: 4, ValueSize: 4, MaxEntries: 1})
	require.NoError(t, err)
	defer calls.Close()
	require.NoError(t, calls.Put(uint32(0), program(t, typ, "cil_called")))
	pinAt(t, calls, pin)
	var out []*ebpf.Program
	for _, name := range names {
		prog := tailCaller(t, typ, name, calls)
		t.Cleanup(func() { prog.Close() })
		out = append(out, prog)
	}
	return out
}

// wire is a pair of sockets, the sender in a network namespace of its own.
type wire struct{ from, to net.PacketConn }

// newWire connects the test's namespace to another through eth0 and a peer.
func newWire(t testing.TB) *wire {
	t.Helper()
	ownRun(t)
	ip(t, "netns add peer")
	ip(t, "link add dev eth0 type veth peer name eth0 netns peer")
	ip(t, "addr add 10.9.0.1/24 dev eth0")
	ip(t, "-n peer addr add 10.9.0.2/24 dev eth0")
	// No packet waits for address resolution.
	mac := func(args ...string) string {
		return run(t, "sh", "-c", "ip "+args[0]+" -o link show dev eth0 | sed 's/.*link.ether \\([^ ]*\\).*/\\1/' | tr -d '\\n'")
	}
	ip(t, "link set dev eth0 up")
	ip(t, "-n peer link set dev eth0 up")
	ip(t, "-n peer neigh add 10.9.0.1 lladdr "+mac("")+" dev eth0 nud permanent")

	to, err := net.ListenPacket("udp4", "10.9.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { to.Close() })
	return &wire{from: listenIn(t, "peer", "10.9.0.2:0"), to: to}
}

// listenIn opens a socket in another network namespace; it stays there.
func listenIn(t testing.TB, name, addr string) net.PacketConn {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := netns.Get()
	require.NoError(t, err)
	defer own.Close()
	other, err := netns.GetFromName(name)
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, netns.Set(other))
	conn, err := net.ListenPacket("udp4", addr)
	require.NoError(t, netns.Set(own))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// passes sends packets and reports how many arrive, waiting for missing ones. Packets on a veth
// arrive while being sent.
func (w *wire) passes(t testing.TB, n int, wait time.Duration) int {
	t.Helper()
	for range n {
		_, err := w.from.WriteTo([]byte("x"), w.to.LocalAddr())
		require.NoError(t, err)
	}
	require.NoError(t, w.to.SetReadDeadline(time.Now().Add(wait)))
	buf := make([]byte, 16)
	for got := range n {
		if _, _, err := w.to.ReadFrom(buf); err != nil {
			return got
		}
	}
	return n
}

// A program whose pins are removed first misses its tail calls, and drops packets. Here packets
// pass after each single step.
func TestCLN3_NoPacketIsDropped(t *testing.T) {
	for _, way := range []string{"tc", "tcx", "xdp"} {
		t.Run(way, func(t *testing.T) {
			testns.Enter(t, testns.Mount|testns.Net)
			if way == "tcx" {
				needsTCX(t)
			}
			c := cleanup.Leftovers{Ownership: ours(), Scope: "all-state", BPFRoots: []string{bpfDir(t)}, CgroupRoot: noCgroup}
			w := newWire(t)
			pin := filepath.Join(c.BPFRoots[0], "tc", "globals", "cilium_calls")
			attachCaller(t, way, pin)
			const burst = 20
			require.Equal(t, burst, w.passes(t, burst, time.Minute), "with the program")

			steps := 0
			c.Progress = func(_, _ int, item string, err error) {
				require.NoError(t, err)
				require.Equal(t, burst, w.passes(t, burst, time.Minute), "after %s", item)
				steps++
			}
			apply(t, c)
			require.GreaterOrEqual(t, steps, 2)
			require.NoFileExists(t, pin)

			// The test would notice: with only the pin gone nothing passes.
			attachCaller(t, way, pin)
			require.Equal(t, burst, w.passes(t, burst, time.Minute))
			require.NoError(t, os.Remove(pin))
			require.Eventually(t, func() bool { return w.passes(t, 1, 50*time.Millisecond) == 0 }, time.Minute, time.Millisecond)
			c.Progress = nil
			require.NoError(t, c.Apply(context.Background()))
			require.Equal(t, burst, w.passes(t, burst, time.Minute), "and passes again without the program")
		})
	}
}

func attachCaller(t testing.TB, way, pin string) {
	t.Helper()
	switch way {
	case "tc":
		prog := pinnedCalls(t, ebpf.SchedCLS, pin, "cil_from_netdev")[0]
		clsact(t, "eth0")
		filter(t, "eth0", ingress, 1, "", prog)
	case "tcx":
		tcxAttach(t, "eth0", ebpf.AttachTCXIngress, pinnedCalls(t, ebpf.SchedCLS, pin, "cil_from_netdev")[0])
	case "xdp":
		setXDP(t, "eth0", pinnedCalls(t, ebpf.XDP, pin, "cil_xdp_entry")[0], unix.XDP_FLAGS_SKB_MODE)
	}
}
