// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

const kindCgroup = "cgroup program"

// cgroupAttachTypes are the places of a cgroup where programs can be (Linux
// 4.10 to 6.7); a kernel says of those that it does not know that they are
// invalid.
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

// cgroupRef identifies a program on a cgroup: bpfLink is 0 for one that was
// attached by itself.
type cgroupRef struct {
	path    string
	id      inode
	attach  ebpf.AttachType
	prog    ebpf.ProgramID
	bpfLink link.ID
}

// cgroupSlot is what the kernel tells of a bpf_link on a cgroup: the inode of
// the cgroup's directory, and the place.
type cgroupSlot struct {
	cgroup uint64
	attach ebpf.AttachType
}

// findCgroupPrograms lists owned programs on the root of the cgroups.
func findCgroupPrograms(ctx context.Context, s *session) error {
	if !s.own.ownsPrograms() {
		return nil
	}
	path, dir, id, err := s.openCgroupRoot()
	if dir == nil {
		return err
	}
	defer dir.Close()
	links, err := s.bpfLinks()
	if err != nil {
		return err
	}
	var errs errorSet
	for _, attach := range cgroupAttachTypes {
		if ctx.Err() != nil {
			break
		}
		root := cgroupRef{path: path, id: id, attach: attach}
		errs.add(s.sortCgroup(root, int(dir.Fd()), links.cgroup[cgroupSlot{id.ino, attach}]))
	}
	return errs.join()
}

// openCgroupRoot opens the root of the cgroup2 hierarchy, at the first mount of
// it that nothing hides, if the field does not say.
func (s *session) openCgroupRoot() (path string, dir *os.File, id inode, err error) {
	paths := []string{s.CgroupRoot}
	if s.CgroupRoot == "" {
		if paths, err = s.cgroupMounts(); err != nil {
			return "", nil, inode{}, err
		}
	}
	for _, path := range paths {
		if dir, id, err = openCgroup(path); dir != nil || err != nil {
			return path, dir, id, err
		}
	}
	return "", nil, inode{}, nil
}

func (s *session) cgroupMounts() ([]string, error) {
	all, err := s.mountPoints()
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, m := range all {
		if m.fstype == "cgroup2" && m.root == "/" {
			paths = append(paths, m.path)
		}
	}
	return paths, nil
}

// openCgroup opens a directory of a cgroup2 file system; nil for anything else.
func openCgroup(path string) (*os.File, inode, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, inode{}, notThere(err)
	}
	var st unix.Stat_t
	var fs unix.Statfs_t
	err = errors.Join(unix.Fstatfs(int(dir.Fd()), &fs), unix.Fstat(int(dir.Fd()), &st))
	if err != nil {
		dir.Close()
		return nil, inode{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if fs.Type != unix.CGROUP2_SUPER_MAGIC {
		dir.Close()
		return nil, inode{}, nil
	}
	return dir, inodeOf(&st), nil
}

// cgroupLink is a bpf_link on a cgroup.
type cgroupLink struct {
	id   link.ID
	prog ebpf.ProgramID
}

// sortCgroup lists what is attached at one place. What the kernel lists there
// holds the programs of bpf_links as well; those that are left over were
// attached by themselves, each program at most once.
func (s *session) sortCgroup(at cgroupRef, fd int, links []cgroupLink) error {
	var errs errorSet
	byLink := map[ebpf.ProgramID]int{}
	for _, l := range links {
		byLink[l.prog]++
		ref := at
		ref.prog, ref.bpfLink = l.prog, l.id
		errs.add(s.foundCgroup(ref))
	}
	attached, err := attachedTo(fd, at.attach)
	if unsupportedHook(err) {
		return errs.join()
	}
	if err != nil {
		errs.add(fmt.Errorf("list the programs of %s: %w", at.path, err))
	}
	for _, a := range attached {
		if byLink[a.id]--; byLink[a.id] >= 0 {
			continue
		}
		ref := at
		ref.prog = a.id
		errs.add(s.foundCgroup(ref))
	}
	return errs.join()
}

func (s *session) foundCgroup(ref cgroupRef) error {
	owned, err := s.ownsProgram(uint32(ref.prog))
	if !owned {
		return err
	}
	item := Item{
		Kind:   kindCgroup,
		Object: ref.path + " " + ref.place() + " " + s.programs[uint32(ref.prog)].name,
		Detail: fmt.Sprintf("program %d", ref.prog),
		ref:    ref,
	}
	if ref.bpfLink != 0 {
		item.Detail += fmt.Sprintf(" bpf_link %d", ref.bpfLink)
	}
	s.found(item)
	return nil
}

// place is the name of the attach type, such as "Inet4Connect".
func (r cgroupRef) place() string {
	return strings.TrimPrefix(strings.TrimPrefix(r.attach.String(), "CGroup"), "Cgroup")
}

func removeCgroupProgram(_ context.Context, _ *session, item Item) error {
	ref, ok := item.ref.(cgroupRef)
	if !ok {
		return fmt.Errorf("identity of type %T", item.ref)
	}
	if ref.bpfLink != 0 {
		return detachBPFLink(ref.bpfLink)
	}
	dir, id, err := openCgroup(ref.path)
	if err != nil {
		return err
	}
	if dir == nil {
		return fmt.Errorf("%s is no cgroup any more: %w", ref.path, errOther)
	}
	defer dir.Close()
	if id != ref.id {
		return errOther
	}
	// Where only one program may be attached, the kernel detaches it without
	// comparing.
	attached, err := attachedTo(int(dir.Fd()), ref.attach)
	if err != nil {
		return err
	}
	for _, a := range attached {
		if a.id == ref.prog {
			return detachProgram(int(dir.Fd()), ref.attach, ref.prog)
		}
	}
	return nil
}
