// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Stat describes path.
func (Real) Stat(path string) (fstype, root, mount string, err error) {
	fd, err := openAt(unix.AT_FDCWD, path, path)
	if err != nil {
		return "", "", "", err
	}
	defer unix.Close(fd)
	s, err := describe(fd, path)
	if err != nil {
		return "", "", "", err
	}
	if !s.isMount() {
		return s.fstype, "", "", nil
	}
	if s.fstype == cgroup2 {
		root, err = s.cgroupRoot()
	}
	return s.fstype, root, s.mount(), err
}

// Numbers of inodes that are part of the kernel's interface.
const (
	initialCgroupNamespace = 0xEFFFFFFB // PROC_CGROUP_INIT_INO
	rootCgroup             = 1
)

// cgroupRoot returns "/" for a mount of the root of the thread's cgroup namespace, which
// is what a new mount shows. None is made to compare with in the initial namespace, where
// it would set the options of the whole hierarchy (see keepOptions), nor if that cannot be
// excluded: mountinfo decides then, and if none can be made.
func (s *status) cgroupRoot() (string, error) {
	var own unix.Stat_t
	err := unix.Stat("/proc/thread-self/ns/cgroup", &own)
	if err == nil && own.Ino == initialCgroupNamespace {
		return map[bool]string{true: "/"}[s.stat.Ino == rootCgroup], nil
	}
	fd := -1
	if err == nil {
		fd, err = detached("none", cgroup2, "")
	}
	if refused(err) || errors.Is(err, fs.ErrNotExist) {
		infos, err := Mounts(Real{})
		m, _ := byID(infos, s.id)
		return m.Root, err
	}
	if err != nil {
		return "", fmt.Errorf("find the host's root cgroup: %w", err)
	}
	defer unix.Close(fd)
	its, err := describe(fd, "detached cgroup2")
	if err == nil && its.directory() == s.directory() {
		return "/", nil
	}
	return "", err
}

// status is the kernel's description of an open path.
type status struct {
	fstype string
	stat   unix.Statx_t
	id     uint64 // of the mount, as in mountinfo: reused after an unmount
	unique uint64 // of the mount, never reused; 0 before Linux 6.8
}

// directory identifies a directory of a file system.
func (s *status) directory() string {
	return fmt.Sprintf("%d:%d/%d", s.stat.Dev_major, s.stat.Dev_minor, s.stat.Ino)
}

// mount identifies a mount as exactly as the kernel can.
func (s *status) mount() string {
	name := fmt.Sprintf("id=%d dev=%d:%d", s.id, s.stat.Dev_major, s.stat.Dev_minor)
	if s.unique != 0 {
		name += fmt.Sprintf(" unique=%d", s.unique)
	}
	return name
}

// openAt opens a name in a directory, whatever it is of (O_PATH), and follows no link at its
// end.
func openAt(dir int, name, path string) (fd int, err error) {
	for {
		fd, err = unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, pathError("open", path, err)
		}
	}
}

func describe(fd int, path string) (*status, error) {
	s := &status{}
	var f unix.Statfs_t
	if err := unix.Fstatfs(fd, &f); err != nil {
		return nil, pathError("statfs", path, err)
	}
	s.fstype = typeOf(int64(f.Type))
	var unique unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, &s.stat)
	if err == nil {
		err = unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID_UNIQUE, &unique)
	}
	if err != nil {
		return nil, pathError("statx", path, err)
	}
	if unique.Mask&unix.STATX_MNT_ID_UNIQUE != 0 {
		s.unique = unique.Mnt_id
	}
	s.id = s.stat.Mnt_id
	return s, nil
}

// isMount reports whether the path is the top of a mount.
func (s *status) isMount() bool { return s.stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 }

// types names the file systems that matter to a mount of ours; mountinfo names the others.
var types = map[int64]string{
	unix.BPF_FS_MAGIC:        "bpf",
	unix.CGROUP2_SUPER_MAGIC: cgroup2,
	unix.CGROUP_SUPER_MAGIC:  "cgroup",
	unix.TMPFS_MAGIC:         "tmpfs",
}

func typeOf(magic int64) string {
	magic &= 0xffffffff // a signed 32-bit number on some architectures
	return cmp.Or(types[magic], fmt.Sprintf("type %#x", magic))
}
