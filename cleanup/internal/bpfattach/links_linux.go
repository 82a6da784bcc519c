// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpfattach

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Links are the bpf_links of the machine that are for XDP or for a cgroup.
type Links struct {
	XDP    map[XDPPoint][]link.ID
	Cgroup map[CgroupPoint][]Program
}

// XDPPoint is the kernel's description of a bpf_link for XDP. It leaves out the network
// namespace, so two of them may have the same one.
type XDPPoint struct {
	Link    int // the index of the network link
	Program uint32
}

// CgroupPoint is the kernel's description of a bpf_link on a cgroup: the inode of the
// cgroup's directory, and the attach type.
type CgroupPoint struct {
	Cgroup uint64
	Attach ebpf.AttachType
}

// AllLinks looks at all bpf_links.
func AllLinks() (*Links, error) {
	out := &Links{map[XDPPoint][]link.ID{}, map[CgroupPoint][]Program{}}
	it := new(link.Iterator)
	defer it.Close()
	for it.Next() {
		// A link may end while it is looked at, or be of a kind that the library
		// does not know; then it is none of interest.
		info, err := it.Link.Info()
		if errno := unix.Errno(0); errors.As(err, &errno) && errno != unix.ENOENT {
			return nil, fmt.Errorf("bpf_link %d: %w", it.ID, err)
		}
		if err != nil {
			continue
		}
		if xdp := info.XDP(); xdp != nil {
			at := XDPPoint{int(xdp.Ifindex), uint32(info.Program)}
			out.XDP[at] = append(out.XDP[at], it.ID)
		}
		if cgroup := info.Cgroup(); cgroup != nil {
			at := CgroupPoint{cgroup.CgroupId, ebpf.AttachType(cgroup.AttachType)}
			out.Cgroup[at] = append(out.Cgroup[at], Program{info.Program, it.ID})
		}
	}
	return out, it.Err()
}
