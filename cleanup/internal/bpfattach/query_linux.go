// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpfattach

import (
	"errors"
	"fmt"

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

// Query lists the programs attached to a target: a network link by its index, or a cgroup
// by a descriptor of its directory. A link that is gone has nothing.
func Query(target int, attach ebpf.AttachType) (list []Program, err error) {
	options := link.QueryOptions{Target: target, Attach: attach}
	if attach == ebpf.AttachLSMCgroup {
		options.QueryFlags = unix.BPF_F_QUERY_EFFECTIVE // the library asks for no flags, and the others need them
	}
	// The library takes a missing capability for a kernel without this request (Linux 4.15), and
	// remembers it.
	var result *link.QueryResult
	err = unix.EPERM
	if len(remedy.Missing(remedy.NetAdmin)) == 0 {
		result, err = link.QueryPrograms(options)
	}
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, link.ErrNotSupported):
		return nil, remedy.Capabilities(unix.EPERM, "", remedy.NetAdmin)
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV):
		return nil, nil
	case err != nil:
		return nil, err
	}
	for _, p := range result.Programs {
		id, _ := p.LinkID()
		list = append(list, Program{p.ID, id})
	}
	return list, nil
}

// IsUnsupported reports whether a kernel does not know an attach point, or a
// field of the request that came with it.
func IsUnsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.E2BIG)
}
