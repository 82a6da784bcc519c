// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpfattach

import (
	"errors"
	"fmt"
	"time"

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

// Links are looked at again this often, with this pause, while another program makes one: the kernel answers EAGAIN for an id that is taken and has no
// link yet (bpf_link_by_id in kernel/bpf/syscall.c).
const (
	unsettledTries = 100
	unsettledPause = time.Millisecond
)

// AllLinks looks at all bpf_links.
func AllLinks() (all *Links, err error) {
	for range unsettledTries {
		if all, err = allLinks(); !errors.Is(err, unix.EAGAIN) {
			break
		}
		time.Sleep(unsettledPause)
	}
	return all, err
}

func allLinks() (*Links, error) {
	out := &Links{map[XDPPoint][]link.ID{}, map[CgroupPoint][]Program{}}
	it := new(link.Iterator)
	defer it.Close()
	for it.Next() {
		// A link may end meanwhile, or be of a kind that the library does not know: neither
		// matters here.
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
