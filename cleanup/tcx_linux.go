// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

const (
	kindTCX    = "tcx program"
	kindNetkit = "netkit program"
)

// hook is a place on a network link where the kernel keeps a list of programs.
type hook struct {
	attach ebpf.AttachType
	kind   string
	name   string
}

// The hooks of tcx are on every link (Linux 6.6), those of netkit on the
// primary device of a netkit pair (Linux 6.7).
var (
	tcxHooks = []hook{
		{ebpf.AttachTCXIngress, kindTCX, "ingress"},
		{ebpf.AttachTCXEgress, kindTCX, "egress"},
	}
	netkitHooks = []hook{
		{ebpf.AttachNetkitPrimary, kindNetkit, "primary"},
		{ebpf.AttachNetkitPeer, kindNetkit, "peer"},
	}
)

// hookRef identifies a program on a hook.
type hookRef struct {
	link   int
	attach ebpf.AttachType
	attachedProgram
}

func (r hookRef) onLink() int { return r.link }

func findTCX(ctx context.Context, s *session) error {
	return s.findHooks(ctx, tcxHooks, func(linkInfo) bool { return true })
}

func findNetkit(ctx context.Context, s *session) error {
	return s.findHooks(ctx, netkitHooks, func(l linkInfo) bool { return l.kind == "netkit" })
}

// findHooks lists owned programs on hooks of links. It asks link by link: the
// list of bpf_links has the programs of all network namespaces, and does not
// say which.
func (s *session) findHooks(ctx context.Context, hooks []hook, has func(linkInfo) bool) error {
	if !s.own.ownsPrograms() {
		return nil
	}
	links, err := s.links(ctx)
	if err != nil {
		return err
	}
	var errs errorSet
	for _, l := range links {
		if !has(l) {
			continue
		}
		for _, h := range hooks {
			attached, err := attachedTo(l.index, h.attach)
			switch {
			case unsupportedHook(err):
				return errs.join()
			case errors.Is(err, unix.EACCES) && h.kind == kindNetkit:
				continue // the peer of a pair, of which the primary device has the hooks
			case err != nil:
				errs.add(fmt.Errorf("link %s: %w", l.name, err))
			}
			errs.add(s.sortHook(l, h, attached))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errs.join()
}

func (s *session) sortHook(l linkInfo, h hook, attached []attachedProgram) error {
	var errs errorSet
	for _, a := range attached {
		owned, err := s.ownsProgram(uint32(a.id))
		errs.add(err)
		if !owned {
			continue
		}
		name := s.programs[uint32(a.id)].name
		s.hooked[l.index] = append(s.hooked[l.index], name)
		item := Item{
			Kind:   h.kind,
			Object: l.name + " " + h.name + " " + name,
			Detail: fmt.Sprintf("program %d", a.id),
			ref:    hookRef{l.index, h.attach, a},
		}
		if a.bpfLink != 0 {
			item.Detail += fmt.Sprintf(" bpf_link %d", a.bpfLink)
		}
		s.found(item)
	}
	return errs.join()
}

func removeHook(_ context.Context, _ *session, item Item) error {
	ref, ok := item.ref.(hookRef)
	if !ok {
		return fmt.Errorf("identity of type %T", item.ref)
	}
	if ref.bpfLink != 0 {
		return detachBPFLink(ref.bpfLink)
	}
	return detachProgram(ref.link, ref.attach, ref.id)
}

// detachBPFLink ends a bpf_link, whoever holds or pins it. Ids of links are
// not used again, and one whose target is gone is detached already.
func detachBPFLink(id link.ID) error {
	l, err := link.NewFromID(id)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return bpfHint(err)
	}
	defer l.Close()
	return detach(l)
}

// detach is BPF_LINK_DETACH of bpf(2); ebpf has it from v0.20 only.
func detach(l link.Link) error {
	holder, ok := l.(interface{ FD() int })
	if !ok {
		return fmt.Errorf("detach a link of type %T: %w", l, errors.ErrUnsupported)
	}
	attr := struct{ fd uint32 }{uint32(holder.FD())}
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_LINK_DETACH, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno == 0 || errno == unix.ENOLINK {
		return nil
	}
	return fmt.Errorf("detach link: %w", errno)
}

// detachProgram takes a program off a link or a cgroup, where it was attached
// without a bpf_link. Another program there stays.
func detachProgram(target int, attach ebpf.AttachType, id ebpf.ProgramID) error {
	prog, err := ebpf.NewProgramFromID(id)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return bpfHint(err)
	}
	defer prog.Close()
	err = link.RawDetachProgram(link.RawDetachProgramOptions{Target: target, Program: prog, Attach: attach})
	if gone(err) {
		return nil
	}
	return err
}
