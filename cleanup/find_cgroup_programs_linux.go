// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup/internal/bpfattach"
	"github.com/slipway-dev/slipway/cleanup/internal/filetree"
	"github.com/slipway-dev/slipway/cleanup/internal/rtnl"
	"github.com/slipway-dev/slipway/internal/failure"
)

// cgroupAttachTypes are the attach types of cgroups (Linux 4.10 to 6.7); a kernel reports
// unknown types as invalid.
var cgroupAttachTypes = []ebpf.AttachType{
	ebpf.AttachCGroupInetIngress, ebpf.AttachCGroupInetEgress,
	ebpf.AttachCGroupInetSockCreate, ebpf.AttachCgroupInetSockRelease,
	ebpf.AttachCGroupSockOps, ebpf.AttachCGroupDevice, ebpf.AttachCGroupSysctl,
	ebpf.AttachCGroupInet4Bind, ebpf.AttachCGroupInet6Bind,
	ebpf.AttachCGroupInet4PostBind, ebpf.AttachCGroupInet6PostBind,
	ebpf.AttachCGroupInet4Connect, ebpf.AttachCGroupInet6Connect, ebpf.AttachCgroupUnixConnect,
	ebpf.AttachCGroupUDP4Sendmsg, ebpf.AttachCGroupUDP6Sendmsg, ebpf.AttachCgroupUnixSendmsg,
	ebpf.AttachCGroupUDP4Recvmsg, ebpf.AttachCGroupUDP6Recvmsg, ebpf.AttachCgroupUnixRecvmsg,
	ebpf.AttachCgroupInet4GetPeername, ebpf.AttachCgroupInet6GetPeername, ebpf.AttachCgroupUnixGetpeername,
	ebpf.AttachCgroupInet4GetSockname, ebpf.AttachCgroupInet6GetSockname, ebpf.AttachCgroupUnixGetsockname,
	ebpf.AttachCGroupGetsockopt, ebpf.AttachCGroupSetsockopt,
	ebpf.AttachLSMCgroup,
}

// cgroupObject is a program on a cgroup.
type cgroupObject struct {
	cgroup
	attach ebpf.AttachType
	bpfattach.Program
}

// cgroup is a directory of the cgroup2 hierarchy.
type cgroup struct {
	path string
	id   filetree.Inode
}

// findCgroupPrograms lists owned programs on the root of the cgroups.
func findCgroupPrograms(ctx context.Context, s *search) error {
	if !s.own.ownsPrograms() {
		return nil
	}
	root, dir, err := s.openCgroupRoot()
	if dir == nil {
		return err
	}
	defer dir.Close()
	links, err := s.programs.bpfLinks()
	if err != nil {
		return err
	}
	var errs failure.Set
	for _, attach := range cgroupAttachTypes {
		if ctx.Err() != nil {
			break
		}
		point := bpfattach.CgroupPoint{Cgroup: root.id.Ino, Attach: attach}
		errs.Add(s.foundOnCgroup(root, dir, attach, links.Cgroup[point]))
	}
	return errs.Join()
}

// openCgroupRoot opens the root of the cgroup2 hierarchy: the first mount of it
// that nothing hides, unless a directory was given.
func (n *node) openCgroupRoot() (root cgroup, dir *os.File, err error) {
	paths := []string{n.cgroupRoot}
	if n.cgroupRoot == "" {
		all, err := n.mountPoints()
		if err != nil {
			return cgroup{}, nil, err
		}
		paths = nil
		for _, m := range all {
			if m.fstype == "cgroup2" && m.root == "/" {
				paths = append(paths, m.path)
			}
		}
	}
	for _, path := range paths {
		if root, dir, err = openCgroup(path); dir != nil || err != nil {
			return root, dir, err
		}
	}
	return cgroup{}, nil, nil
}

// openCgroup opens a directory of a cgroup2 file system; nil for anything else.
func openCgroup(path string) (cgroup, *os.File, error) {
	dir, err := os.Open(path)
	if err != nil {
		return cgroup{}, nil, filetree.NotThere(err)
	}
	var st unix.Stat_t
	var fs unix.Statfs_t
	err = errors.Join(unix.Fstatfs(int(dir.Fd()), &fs), unix.Fstat(int(dir.Fd()), &st))
	if err != nil {
		dir.Close()
		return cgroup{}, nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if fs.Type != unix.CGROUP2_SUPER_MAGIC {
		dir.Close()
		return cgroup{}, nil, nil
	}
	return cgroup{path, filetree.InodeOf(&st)}, dir, nil
}

// foundOnCgroup lists the programs attached with one attach type. The kernel's list
// includes the programs of bpf_links; the others were attached without one, each program
// at most once.
func (s *search) foundOnCgroup(at cgroup, dir *os.File, attach ebpf.AttachType, list []bpfattach.Program) error {
	var errs failure.Set
	byLink := map[ebpf.ProgramID]int{}
	for _, l := range list {
		byLink[l.ID]++
	}
	attached, err := bpfattach.Query(int(dir.Fd()), attach)
	if err != nil && !bpfattach.IsUnsupported(err) {
		errs.Add(fmt.Errorf("list the programs of %s: %w", at.path, err))
	}
	list = slices.Clone(list)
	for _, a := range attached {
		if byLink[a.ID]--; byLink[a.ID] < 0 {
			list = append(list, a)
		}
	}
	// The attach type is shown as "Inet4Connect", for example.
	where := at.path + " " + strings.TrimPrefix(strings.TrimPrefix(attach.String(), "CGroup"), "Cgroup")
	errs.Add(s.foundPrograms(kindCgroup, where, rtnl.Link{}, list, func(p bpfattach.Program) any { return cgroupObject{at, attach, p} }))
	return errs.Join()
}

func (c cgroupObject) remove(context.Context, *removal) error {
	if c.Link != 0 {
		return bpfattach.DetachLink(c.Link)
	}
	now, dir, err := openCgroup(c.path)
	if err != nil {
		return err
	}
	if dir == nil {
		return fmt.Errorf("%s is not a cgroup any more: %w", c.path, failure.ErrReplaced)
	}
	defer dir.Close()
	if now != c.cgroup {
		return failure.ErrReplaced
	}
	// Where only one program may be attached, the kernel detaches it without
	// comparing.
	attached, err := bpfattach.Query(int(dir.Fd()), c.attach)
	if err != nil {
		return err
	}
	for _, a := range attached {
		if a.ID == c.ID {
			return bpfattach.DetachProgram(int(dir.Fd()), c.attach, c.ID)
		}
	}
	return nil
}
