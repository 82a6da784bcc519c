// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"errors"
	"os"
	"runtime"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/remedy"
)

// attachedProgram is one program at a place; bpfLink is 0 if it was attached
// by itself, or if the kernel does not tell.
type attachedProgram struct {
	id      ebpf.ProgramID
	bpfLink link.ID
}

// progQuery is what bpf(2) wants for BPF_PROG_QUERY (union bpf_attr).
type progQuery struct {
	target      uint32 // the index of a network link, or the descriptor of a cgroup
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

// maxAttached is how many programs the kernel allows at one place
// (BPF_CGROUP_MAX_PROGS, BPF_MPROG_MAX).
const maxAttached = 64

// attachedTo lists what is attached to a network link, or to an open cgroup. A
// link that is gone has nothing. It asks the kernel itself, as the library
// takes a missing capability for a kernel without this request.
func attachedTo(target int, attach ebpf.AttachType) ([]attachedProgram, error) {
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
	case errno != 0 && gone(errno):
		return nil, nil
	case errno != 0:
		return nil, remedy.Capabilities(os.NewSyscallError("bpf", errno), "", remedy.NetAdmin)
	}
	out := make([]attachedProgram, min(query.count, maxAttached))
	for i := range out {
		out[i].id = ebpf.ProgramID(programs[i])
		if linked {
			out[i].bpfLink = link.ID(more[i])
		}
	}
	return out, nil
}

// unsupportedHook reports whether a kernel does not know a place, or a field of
// the request that came with it.
func unsupportedHook(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.E2BIG)
}
