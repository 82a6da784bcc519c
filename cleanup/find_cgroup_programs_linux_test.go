// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/internal/testns"
)

// cgroupDir makes a cgroup without processes.
func cgroupDir(t testing.TB) string {
	t.Helper()
	root := testns.TempDir(t)
	require.NoError(t, fsmount.Real{}.Mount("cgroup2", root, "cgroup2", "")) // mount(2) would reset the machine's options
	dir, err := os.MkdirTemp(root, "slipway-test-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.Remove(dir)) })
	return dir
}

// cgroupProgram loads a program that allows everything.
func cgroupProgram(t testing.TB, typ ebpf.ProgramType, attach ebpf.AttachType, name string, use ...*ebpf.Map) *ebpf.Program {
	t.Helper()
	var insns asm.Instructions
	for _, m := range use {
		insns = append(insns, asm.LoadMapPtr(asm.R1, m.FD()))
	}
	spec := &ebpf.ProgramSpec{
		Type: typ, AttachType: attach, Name: name, License: "GPL",
		Instructions: append(insns, asm.Mov.Imm(asm.R0, 1), asm.Return()),
	}
	prog, err := ebpf.NewProgram(spec)
	require.NoError(t, err, attach)
	t.Cleanup(func() { prog.Close() })
	return prog
}

func attachCgroup(t testing.TB, dir string, attach ebpf.AttachType, prog *ebpf.Program) link.Link {
	t.Helper()
	l, err := link.AttachCgroup(link.CgroupOptions{Path: dir, Attach: attach, Program: prog})
	require.NoError(t, err, attach)
	t.Cleanup(func() { l.Close() })
	return l
}

// The flags of BPF_PROG_ATTACH: one program that child cgroups may override, or a list of
// programs.
const allowOverride, allowMulti = 1, 2

func progAttach(t testing.TB, dir string, attach ebpf.AttachType, prog *ebpf.Program, flags uint32) {
	t.Helper()
	f, err := os.Open(dir)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, link.RawAttachProgram(link.RawAttachProgramOptions{Target: int(f.Fd()), Program: prog, Attach: attach, Flags: flags}), attach)
}

// attached lists the programs that the kernel itself reports; bpftool omits attach types newer
// than itself.
func attached(t testing.TB, dir string) (names []string) {
	t.Helper()
	f, err := os.Open(dir)
	require.NoError(t, err)
	defer f.Close()
	for attach := range placesHere(t, dir) {
		result, err := link.QueryPrograms(link.QueryOptions{Target: int(f.Fd()), Attach: attach})
		require.NoError(t, err, attach)
		for _, p := range result.Programs {
			names = append(names, fmt.Sprintf("%s %s", attach, programName(t, p.ID)))
		}
	}
	slices.Sort(names)
	return names
}

// placesHere returns those that this kernel supports.
func placesHere(t testing.TB, dir string) map[ebpf.AttachType]ebpf.ProgramType {
	t.Helper()
	f, err := os.Open(dir)
	require.NoError(t, err)
	defer f.Close()
	here := maps.Clone(places)
	maps.DeleteFunc(here, func(attach ebpf.AttachType, _ ebpf.ProgramType) bool {
		_, err := link.QueryPrograms(link.QueryOptions{Target: int(f.Fd()), Attach: attach})
		return errors.Is(err, unix.EINVAL)
	})
	require.GreaterOrEqual(t, len(here), 23, "at least those of Linux 5.10")
	return here
}

func cgroupOnly(t testing.TB, dir string) cleanup.Leftovers {
	c := bpfState(t)
	c.CgroupRoot = dir
	return c
}

// places maps the attach types of cgroups to their program types.
var places = func() map[ebpf.AttachType]ebpf.ProgramType {
	all := map[ebpf.AttachType]ebpf.ProgramType{}
	for typ, attach := range map[ebpf.ProgramType][]ebpf.AttachType{
		ebpf.CGroupSKB:    {ebpf.AttachCGroupInetIngress, ebpf.AttachCGroupInetEgress},
		ebpf.CGroupSock:   {ebpf.AttachCGroupInetSockCreate, ebpf.AttachCgroupInetSockRelease, ebpf.AttachCGroupInet4PostBind, ebpf.AttachCGroupInet6PostBind},
		ebpf.SockOps:      {ebpf.AttachCGroupSockOps},
		ebpf.CGroupDevice: {ebpf.AttachCGroupDevice},
		ebpf.CGroupSysctl: {ebpf.AttachCGroupSysctl},
		ebpf.CGroupSockAddr: {
			ebpf.AttachCGroupInet4Bind, ebpf.AttachCGroupInet6Bind,
			ebpf.AttachCGroupInet4Connect, ebpf.AttachCGroupInet6Connect, ebpf.AttachCgroupUnixConnect,
			ebpf.AttachCGroupUDP4Sendmsg, ebpf.AttachCGroupUDP6Sendmsg, ebpf.AttachCgroupUnixSendmsg,
			ebpf.AttachCGroupUDP4Recvmsg, ebpf.AttachCGroupUDP6Recvmsg, ebpf.AttachCgroupUnixRecvmsg,
			ebpf.AttachCgroupInet4GetPeername, ebpf.AttachCgroupInet6GetPeername, ebpf.AttachCgroupUnixGetpeername,
			ebpf.AttachCgroupInet4GetSockname, ebpf.AttachCgroupInet6GetSockname, ebpf.AttachCgroupUnixGetsockname,
		},
		ebpf.CGroupSockopt: {ebpf.AttachCGroupGetsockopt, ebpf.AttachCGroupSetsockopt},
	} {
		for _, a := range attach {
			all[a] = typ
		}
	}
	return all
}()

// Every attach type, through bpf_link and PROG_ATTACH, beside a foreign program, and beside
// another cgroup, which is another agent's.
func TestCLN2_CLN6_CgroupPrograms(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	dir, beside := cgroupDir(t), cgroupDir(t)
	places := placesHere(t, dir)
	attachCgroup(t, beside, ebpf.AttachCGroupInet4Connect, cgroupProgram(t, ebpf.CGroupSockAddr, ebpf.AttachCGroupInet4Connect, "cil_sock4_connect"))
	for attach, typ := range places {
		foreign := cgroupProgram(t, typ, attach, "foreign")
		attachCgroup(t, dir, attach, foreign)
		progAttach(t, dir, attach, cgroupProgram(t, typ, attach, "foreign2"), allowMulti)
	}
	before := attached(t, dir)
	require.Len(t, before, 2*len(places))

	for attach, typ := range places {
		attachCgroup(t, dir, attach, cgroupProgram(t, typ, attach, "cil_to_host"))
		progAttach(t, dir, attach, cgroupProgram(t, typ, attach, "cil_from_host"), allowMulti)
	}
	require.Len(t, attached(t, dir), 4*len(places))
	c := cgroupOnly(t, dir)
	inv := inventory(t, c)
	require.Len(t, ofKind("cgroup program", inv.Items), 2*len(places))
	require.Contains(t, ofKind("cgroup program", inv.Items), dir+" Inet4Connect cil_to_host")
	require.Contains(t, ofKind("cgroup program", inv.Items), dir+" UDP6Sendmsg cil_from_host")
	require.Len(t, attached(t, dir), 4*len(places), "listing changes nothing")

	apply(t, c)
	require.Equal(t, before, attached(t, dir))
	require.Len(t, attached(t, beside), 1)
	require.NoError(t, c.Remove(context.Background(), inv.Items), "already gone is success")
}

// A single program on a cgroup, as older agents attach it; one program attached both ways; one
// recognized by its map, and one by its pinned bpf_link.
func TestCLN2_CgroupProgramsOfEachKind(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	dir := cgroupDir(t)
	c := cgroupOnly(t, dir)
	const connect4, connect6, sendmsg4, peer = ebpf.AttachCGroupInet4Connect, ebpf.AttachCGroupInet6Connect, ebpf.AttachCGroupUDP4Sendmsg, ebpf.AttachCgroupInet4GetPeername
	progAttach(t, dir, connect4, cgroupProgram(t, ebpf.CGroupSockAddr, connect4, "cil_sock4_connect"), allowOverride)
	both := cgroupProgram(t, ebpf.CGroupSockAddr, connect6, "cil_sock6_connect")
	progAttach(t, dir, connect6, both, allowMulti)
	attachCgroup(t, dir, connect6, both)
	attachCgroup(t, dir, connect6, both)
	m := array(t, "x")
	pinAt(t, m, c.BPFRoots[0], "tc", "globals", "cilium_lb4")
	progAttach(t, dir, sendmsg4, cgroupProgram(t, ebpf.CGroupSockAddr, sendmsg4, "sock4_sendmsg", m), 0)
	l := attachCgroup(t, dir, peer, cgroupProgram(t, ebpf.CGroupSockAddr, peer, "sock4_peer"))
	pinAt(t, l, c.BPFRoots[0], "cilium", "socketlb", "links", "cgroup", "x")
	require.NoError(t, l.Close())
	require.Len(t, attached(t, dir), 6)

	require.ElementsMatch(t, []string{
		dir + " Inet4Connect cil_sock4_conne",
		dir + " Inet6Connect cil_sock6_conne", dir + " Inet6Connect cil_sock6_conne", dir + " Inet6Connect cil_sock6_conne",
		dir + " UDP4Sendmsg sock4_sendmsg",
		dir + " Inet4GetPeername sock4_peer",
	}, ofKind("cgroup program", inventory(t, c).Items))
	apply(t, c)
	require.Empty(t, attached(t, dir))
}

// securityProgram loads a program for a security hook of cgroups, which the library cannot do;
// nil if the kernel does not allow it.
func securityProgram(t testing.TB, name string) *ebpf.Program {
	t.Helper()
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		testns.Skip(t, "needs a kernel that describes its types: "+err.Error())
	}
	var hook *btf.Func
	require.NoError(t, kernel.TypeByName("bpf_lsm_socket_bind", &hook))
	id, err := kernel.TypeID(hook)
	require.NoError(t, err)
	insns := []uint64{0x1_0000_00b7, 0x95} // r0 = 1; exit
	license := []byte("GPL\x00")
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&insns[0])
	pin.Pin(&license[0])
	attr := struct {
		typ, count     uint32
		insns, license uint64
		_              [2]uint32
		_              uint64
		_              [2]uint32
		name           [16]byte
		_, attach      uint32
		_              [2]uint32
		_              uint64
		_              [2]uint32
		_              uint64
		_              uint32
		attachTo       uint32
	}{
		typ: uint32(ebpf.LSM), count: uint32(len(insns)), attach: uint32(ebpf.AttachLSMCgroup), attachTo: uint32(id),
		insns:   uint64(uintptr(unsafe.Pointer(&insns[0]))),
		license: uint64(uintptr(unsafe.Pointer(&license[0]))),
	}
	copy(attr.name[:15], name)
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno == unix.EPERM {
		t.Logf("no program for a security hook is allowed here: %v", errno)
		return nil
	}
	if errno == unix.EINVAL {
		testns.SkipKernel(t, "programs of cgroups for security hooks (Linux 6.0)")
	}
	require.Zero(t, errno, "%v", errno)
	prog, err := ebpf.NewProgramFromFD(int(fd))
	require.NoError(t, err)
	t.Cleanup(func() { prog.Close() })
	return prog
}

// Programs for security hooks are listed all together.
func TestCLN2_CgroupSecurityHooks(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	dir := cgroupDir(t)
	c := cgroupOnly(t, dir)
	require.Empty(t, inventory(t, c).Items, "no error where nothing is there")
	ours, foreign := securityProgram(t, "cil_to_host"), securityProgram(t, "foreign")
	if ours == nil || foreign == nil {
		return
	}
	attachCgroup(t, dir, ebpf.AttachLSMCgroup, foreign)
	progAttach(t, dir, ebpf.AttachLSMCgroup, ours, allowMulti)
	attachCgroup(t, dir, ebpf.AttachLSMCgroup, ours)
	require.Len(t, linkIDs(t, ours), 1)
	inv := inventory(t, c)
	require.Equal(t, []string{dir + " LSMCgroup cil_to_host", dir + " LSMCgroup cil_to_host"}, ofKind("cgroup program", inv.Items))
	apply(t, c)
	require.NoError(t, c.Remove(context.Background(), inv.Items), "already gone is success")
	require.Len(t, linkIDs(t, foreign), 1)
	cgroup, err := os.Open(dir)
	require.NoError(t, err)
	defer cgroup.Close()
	err = link.RawDetachProgram(link.RawDetachProgramOptions{Target: int(cgroup.Fd()), Program: ours, Attach: ebpf.AttachLSMCgroup})
	require.ErrorIs(t, err, unix.ENOENT, "it is not attached")
}

// Without the field, the root of the first mounted cgroup2 is used.
func TestCgroupRootOfTheMounts(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	dir := cgroupDir(t)
	const connect4 = ebpf.AttachCGroupInet4Connect
	attachCgroup(t, dir, connect4, cgroupProgram(t, ebpf.CGroupSockAddr, connect4, "cil_sock4_connect"))
	c := cgroupOnly(t, "")
	require.Empty(t, inventory(t, c).Items, "the machine's root has none")
	c.CgroupRoot = filepath.Dir(dir)
	require.Empty(t, inventory(t, c).Items, "nor has it from here")
	for _, none := range []string{"/nowhere", "/etc/passwd", t.TempDir()} {
		c.CgroupRoot = none
		require.Empty(t, inventory(t, c).Items, "not a cgroup: passed over")
	}
	c.CgroupRoot = dir
	require.Len(t, inventory(t, c).Items, 1)
}
