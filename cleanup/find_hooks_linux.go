// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup/internal/bpfattach"
	"github.com/slipway-dev/slipway/cleanup/internal/rtnl"
	"github.com/slipway-dev/slipway/internal/failure"
)

// hook is where on a network link the kernel has a list of programs.
type hook struct {
	attach ebpf.AttachType
	name   string
}

// The hooks of tcx are on every link (Linux 6.6), those of netkit on the primary device of
// a netkit pair (Linux 6.7).
var hooks = map[string][]hook{
	kindTCX:    {{ebpf.AttachTCXIngress, "ingress"}, {ebpf.AttachTCXEgress, "egress"}},
	kindNetkit: {{ebpf.AttachNetkitPrimary, "primary"}, {ebpf.AttachNetkitPeer, "peer"}},
}

// hookObject is a program on a hook.
type hookObject struct {
	link   int
	attach ebpf.AttachType
	bpfattach.Program
}

func (h hookObject) onLink() int { return h.link }

func findTCX(ctx context.Context, s *search) error { return s.findHooks(ctx, kindTCX) }

func findNetkit(ctx context.Context, s *search) error { return s.findHooks(ctx, kindNetkit) }

// findHooks lists owned programs on hooks of links. It asks link by link: the list of
// bpf_links has the programs of all network namespaces, and does not name them.
func (s *search) findHooks(ctx context.Context, kind string) error {
	if !s.own.ownsPrograms() {
		return nil
	}
	list, err := s.links.all(ctx)
	if err != nil {
		return err
	}
	var errs failure.Set
	for _, l := range list {
		if kind == kindNetkit && l.Kind != "netkit" {
			continue
		}
		for _, h := range hooks[kind] {
			attached, err := bpfattach.Query(l.Index, h.attach)
			switch {
			case bpfattach.IsUnsupported(err):
				return errs.Join()
			case errors.Is(err, unix.EACCES) && kind == kindNetkit:
				continue // the peer of a pair: the hooks are on the primary device
			case err != nil:
				errs.Add(fmt.Errorf("link %s: %w", l.Name, err))
			}
			errs.Add(s.foundPrograms(kind, l.Name+" "+h.name, l, attached, func(p bpfattach.Program) any { return hookObject{l.Index, h.attach, p} }))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errs.Join()
}

// foundPrograms lists the owned ones of the programs that are attached at one place, to a link
// or, if that is the zero value, to none.
func (s *search) foundPrograms(kind, where string, l rtnl.Link, list []bpfattach.Program, object func(bpfattach.Program) any) error {
	var errs failure.Set
	for _, p := range list {
		owned, err := s.programs.owns(uint32(p.ID))
		errs.Add(err)
		if !owned {
			continue
		}
		name := s.programs.name(uint32(p.ID))
		s.links.carries(l.Index, name)
		s.foundAttached(Item{Kind: kind, Object: where + " " + name, Detail: p.String(), object: object(p)}, p, l.Name)
	}
	return errs.Join()
}

func (h hookObject) remove(context.Context, *removal) error {
	if h.Link != 0 {
		return bpfattach.DetachLink(h.Link)
	}
	return bpfattach.DetachProgram(h.link, h.attach, h.ID)
}
