// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpfattach

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/remedy"
)

// Hint names in an error the capability that is missing to open a program, a map
// or a bpf_link by its id.
func Hint(err error) error { return remedy.Capabilities(err, "", remedy.SysAdmin) }

// DetachLink detaches a bpf_link, even if it is pinned or open in other processes; an
// already detached or deleted link is success. Ids of bpf_links are never reused.
func DetachLink(id link.ID) error {
	l, err := link.NewFromID(id)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return Hint(err)
	}
	defer l.Close()
	return detach(l)
}

// detach is BPF_LINK_DETACH of bpf(2); ebpf has it from v0.20 only.
func detach(l link.Link) error {
	open, ok := l.(interface{ FD() int })
	if !ok {
		return fmt.Errorf("detach a link of type %T: %w", l, errors.ErrUnsupported)
	}
	attr := struct{ fd uint32 }{uint32(open.FD())}
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_LINK_DETACH, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno == 0 || errno == unix.ENOLINK {
		return nil
	}
	return fmt.Errorf("detach link: %w", errno)
}

// DetachProgram detaches a program that was attached without a bpf_link from a
// target of [Query], and no other program.
func DetachProgram(target int, attach ebpf.AttachType, id ebpf.ProgramID) error {
	prog, err := ebpf.NewProgramFromID(id)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return Hint(err)
	}
	defer prog.Close()
	err = link.RawDetachProgram(link.RawDetachProgramOptions{Target: target, Program: prog, Attach: attach})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}
