// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpfattach

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/remedy"
)

// Program is a program that is attached; Link is 0 if it was attached without a bpf_link,
// or if the kernel does not report the link.
type Program struct {
	ID   ebpf.ProgramID
	Link link.ID
}

// String returns a text such as "program 12 bpf_link 5".
func (p Program) String() string {
	if p.Link == 0 {
		return fmt.Sprintf("program %d", p.ID)
	}
	return fmt.Sprintf("program %d bpf_link %d", p.ID, p.Link)
}

// progQuery is the argument of bpf(2) for BPF_PROG_QUERY (union bpf_attr).
type progQuery struct {
	target      uint32
	attach      uint32
	flags       uint32
	attachFlags uint32
	programs    uint64 // address of the list
	count       uint32
	_           uint32
	progFlags   uint64 // address
	links       uint64 // address
	linkFlags   uint64 // address
	revision    uint64
}

// maxAttached is how many programs the kernel allows at one attach point
// (BPF_CGROUP_MAX_PROGS, BPF_MPROG_MAX).
const maxAttached = 64

// Query lists the programs attached to a target: a network link by its index, or a cgroup
// by a descriptor of its directory. A link that is gone has nothing. It asks the kernel
// itself, as the library takes a missing capability for a kernel without this request.
func Query(target int, attach ebpf.AttachType) ([]Program, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	programs, more := new([maxAttached]uint32), new([maxAttached]uint32)
	query := &progQuery{target: uint32(target), attach: uint32(attach), count: maxAttached}
	pin.Pin(programs)
	pin.Pin(more)
	pin.Pin(query)
	query.programs = uint64(uintptr(unsafe.Pointer(programs)))
	address := uint64(uintptr(unsafe.Pointer(more)))
	linked := false
	switch attach {
	case ebpf.AttachLSMCgroup:
		query.progFlags = address // has to be there, and is of no interest
	case ebpf.AttachTCXIngress, ebpf.AttachTCXEgress, ebpf.AttachNetkitPrimary, ebpf.AttachNetkitPeer:
		query.links, linked = address, true
	}
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_QUERY, uintptr(unsafe.Pointer(query)), unsafe.Sizeof(*query))
	switch {
	case errno == unix.ENOENT || errno == unix.ENODEV:
		return nil, nil
	case errno != 0:
		return nil, remedy.Capabilities(os.NewSyscallError("bpf", errno), "", remedy.NetAdmin)
	}
	out := make([]Program, min(query.count, maxAttached))
	for i := range out {
		out[i].ID = ebpf.ProgramID(programs[i])
		if linked {
			out[i].Link = link.ID(more[i])
		}
	}
	return out, nil
}

// IsUnsupported reports whether a kernel does not know an attach point, or a
// field of the request that came with it.
func IsUnsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.E2BIG)
}
