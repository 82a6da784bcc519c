// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// bpfLinks are the bpf_links of the machine by their places, as far as these
// are of interest.
type bpfLinks struct {
	xdp    map[xdpSlot][]link.ID
	cgroup map[cgroupSlot][]cgroupLink
}

// bpfLinks returns the bpf_links as they were when first asked for.
func (s *session) bpfLinks() (*bpfLinks, error) {
	if s.linksOfBPF == nil {
		all, err := listBPFLinks()
		if err != nil {
			return nil, fmt.Errorf("list bpf_links: %w", bpfHint(err))
		}
		s.linksOfBPF = all
	}
	return s.linksOfBPF, nil
}

func listBPFLinks() (*bpfLinks, error) {
	out := &bpfLinks{map[xdpSlot][]link.ID{}, map[cgroupSlot][]cgroupLink{}}
	it := new(link.Iterator)
	defer it.Close()
	for it.Next() {
		// A link may end while it is looked at, or be of a kind that the library
		// does not know; then it is none of interest.
		info, err := it.Link.Info()
		if errno := unix.Errno(0); errors.As(err, &errno) && !gone(errno) {
			return nil, fmt.Errorf("bpf_link %d: %w", it.ID, err)
		}
		if err != nil {
			continue
		}
		if xdp := info.XDP(); xdp != nil {
			slot := xdpSlot{int(xdp.Ifindex), uint32(info.Program)}
			out.xdp[slot] = append(out.xdp[slot], it.ID)
		}
		if cgroup := info.Cgroup(); cgroup != nil {
			slot := cgroupSlot{cgroup.CgroupId, ebpf.AttachType(cgroup.AttachType)}
			out.cgroup[slot] = append(out.cgroup[slot], cgroupLink{it.ID, info.Program})
		}
	}
	return out, it.Err()
}
