// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// attributes are the options that belong to a mount and not to its file
// system, for fsmount(2) and for mount(2).
var attributes = map[string]struct{ attr, flag int }{
	"ro":     {unix.MOUNT_ATTR_RDONLY, unix.MS_RDONLY},
	"nosuid": {unix.MOUNT_ATTR_NOSUID, unix.MS_NOSUID},
	"nodev":  {unix.MOUNT_ATTR_NODEV, unix.MS_NODEV},
	"noexec": {unix.MOUNT_ATTR_NOEXEC, unix.MS_NOEXEC},
}

// split parts options into those of the mount and those of the file system.
func split(options string) (attr, flag int, rest []string) {
	for _, o := range strings.FieldsFunc(options, func(r rune) bool { return r == ',' }) {
		if a, ok := attributes[o]; ok {
			attr, flag = attr|a.attr, flag|a.flag
			continue
		}
		rest = append(rest, o)
	}
	return attr, flag, rest
}

// Open opens a file or directory.
func (Real) Open(name string) (fs.File, error) { return os.Open(name) }

// Unmount takes the topmost mount off path, unless it is in use.
func (Real) Unmount(path string) error {
	return pathError("umount", path, unix.Unmount(path, unix.UMOUNT_NOFOLLOW))
}

// Mount makes a file system and attaches it to path.
func (r Real) Mount(path, fstype, options string, before func(root, mount string) error) error {
	fd, err := r.detached(fstype, options)
	// Before 5.2 the call is missing (ENOSYS). Seccomp filters older than it
	// answer EPERM, as does the kernel without the capability; then mount(2)
	// says so too.
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return mountOld(path, fstype, options, before)
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	s, err := describe(fd, "detached "+fstype)
	if err != nil {
		return err
	}
	if err := before(s.root(), s.mount()); err != nil {
		return err
	}
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return pathError("move_mount", path, err)
	}
	return settle(fd, s.id, path)
}

// detached makes a file system that is mounted nowhere.
func (r Real) detached(fstype, options string) (fd int, err error) {
	if r.Old {
		return -1, pathError("fsopen", fstype, unix.ENOSYS)
	}
	ctx, err := unix.Fsopen(fstype, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, pathError("fsopen", fstype, err)
	}
	defer unix.Close(ctx)
	attr, _, rest := split(options)
	for _, o := range append(rest, "source="+fstype) {
		key, value, _ := strings.Cut(o, "=")
		if err := unix.FsconfigSetString(ctx, key, value); err != nil {
			return -1, pathError("fsconfig "+o, fstype, err)
		}
	}
	if err := unix.FsconfigCreate(ctx); err != nil {
		return -1, pathError("fsconfig create", fstype, err)
	}
	fd, err = unix.Fsmount(ctx, unix.FSMOUNT_CLOEXEC, attr)
	return fd, pathError("fsmount", fstype, err)
}

func mountOld(path, fstype, options string, before func(root, mount string) error) error {
	if err := before("", ""); err != nil {
		return err
	}
	_, flag, rest := split(options)
	if err := unix.Mount(fstype, path, fstype, uintptr(flag), strings.Join(rest, ",")); err != nil {
		return pathError("mount "+fstype, path, err)
	}
	fd, err := openPath(path)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	s, err := describe(fd, path)
	if err != nil {
		return err
	}
	return settle(fd, s.id, path)
}

// settle makes sure that the mount that fd shows was attached first. Of two
// that are made at once both get attached, one upon the other, and no call
// prevents it; so the upper one gives way. It is named by fd: by its path,
// another's could be hit.
func settle(fd int, id uint64, path string) error {
	infos, err := Mounts(Real{})
	if err != nil {
		return nil // without /proc it cannot be told, and most likely nobody else was there
	}
	own, ok := byID(infos, id)
	if !ok { // gone again, together with one that it was stacked on
		return pathError("mount", path, unix.EBUSY)
	}
	under, ok := byID(infos, uint64(own.Parent))
	if !ok || under.Point != own.Point || under.FSType != own.FSType {
		return nil
	}
	if err := unix.Unmount(threadFD(fd), unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
		return pathError("umount the stacked mount", path, err)
	}
	return pathError("mount", path, unix.EBUSY)
}

func byID(infos []Info, id uint64) (Info, bool) {
	for _, i := range infos {
		if uint64(i.ID) == id {
			return i, true
		}
	}
	return Info{}, false
}

// Stat tells about path.
func (Real) Stat(path string) (fstype, root, mount string, err error) {
	fd, err := openPath(path)
	if err != nil {
		return "", "", "", err
	}
	defer unix.Close(fd)
	s, err := describe(fd, path)
	if err != nil {
		return "", "", "", err
	}
	top, err := s.isMount(fd, path)
	if err != nil {
		return "", "", "", err
	}
	if top {
		mount = s.mount()
	}
	return s.fstype, s.root(), mount, nil
}

// status is what the kernel tells about an open path.
type status struct {
	fstype string
	stat   unix.Statx_t
	id     uint64 // of the mount, as in mountinfo: given again after an unmount
	unique uint64 // of the mount, never given again; 0 before Linux 6.8
}

// root names a directory of a file system.
func (s *status) root() string {
	return fmt.Sprintf("%d:%d/%d", s.stat.Dev_major, s.stat.Dev_minor, s.stat.Ino)
}

// mount names a mount as exactly as the kernel can.
func (s *status) mount() string {
	name := fmt.Sprintf("id=%d dev=%d:%d", s.id, s.stat.Dev_major, s.stat.Dev_minor)
	if s.unique != 0 {
		name += fmt.Sprintf(" unique=%d", s.unique)
	}
	return name
}

func openPath(path string) (fd int, err error) {
	fd, err = unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	return fd, pathError("open", path, err)
}

func describe(fd int, path string) (*status, error) {
	s := &status{}
	var f unix.Statfs_t
	if err := unix.Fstatfs(fd, &f); err != nil {
		return nil, pathError("statfs", path, err)
	}
	s.fstype = typeOf(int64(f.Type))
	var unique unix.Statx_t
	for mask, buf := range map[int]*unix.Statx_t{unix.STATX_MNT_ID: &s.stat, unix.STATX_MNT_ID_UNIQUE: &unique} {
		if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS|mask, buf); err != nil {
			return nil, pathError("statx", path, err)
		}
	}
	if unique.Mask&unix.STATX_MNT_ID_UNIQUE != 0 {
		s.unique = unique.Mnt_id
	}
	if s.id = s.stat.Mnt_id; s.stat.Mask&unix.STATX_MNT_ID != 0 {
		return s, nil
	}
	var err error
	s.id, err = mountID(fd) // Linux before 5.8
	return s, err
}

// isMount reports whether the open path is the top of a mount.
func (s *status) isMount(fd int, path string) (bool, error) {
	if s.stat.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return s.stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
	}
	if path == "/" {
		return true, nil
	}
	return crosses(fd, path, s.id) // Linux before 5.8
}

// crosses reports whether the parent of the open path is in another mount.
func crosses(fd int, path string, id uint64) (bool, error) {
	parent, err := unix.Openat(fd, "..", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, pathError("open the parent of", path, err)
	}
	defer unix.Close(parent)
	above, err := mountID(parent)
	return above != id, err
}

// mountID reads the mount's id as in mountinfo from fdinfo.
func mountID(fd int) (uint64, error) {
	raw, err := os.ReadFile(path.Join("/proc/thread-self/fdinfo", strconv.Itoa(fd)))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if id, ok := strings.CutPrefix(line, "mnt_id:"); ok {
			return strconv.ParseUint(strings.TrimSpace(id), 10, 64)
		}
	}
	return 0, fmt.Errorf("fdinfo of %d: no mnt_id", fd)
}

func threadFD(fd int) string { return "/proc/thread-self/fd/" + strconv.Itoa(fd) }

func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

// types names the file systems that are likely to be met.
var types = map[int64]string{
	unix.BPF_FS_MAGIC:          "bpf",
	unix.CGROUP2_SUPER_MAGIC:   "cgroup2",
	unix.CGROUP_SUPER_MAGIC:    "cgroup",
	unix.TMPFS_MAGIC:           "tmpfs",
	unix.SYSFS_MAGIC:           "sysfs",
	unix.PROC_SUPER_MAGIC:      "proc",
	unix.OVERLAYFS_SUPER_MAGIC: "overlay",
	unix.EXT4_SUPER_MAGIC:      "ext4",
	unix.XFS_SUPER_MAGIC:       "xfs",
	unix.BTRFS_SUPER_MAGIC:     "btrfs",
	unix.RAMFS_MAGIC:           "ramfs",
	unix.NFS_SUPER_MAGIC:       "nfs",
}

func typeOf(magic int64) string {
	magic &= 0xffffffff // a signed 32-bit number on some architectures
	return cmp.Or(types[magic], fmt.Sprintf("type %#x", magic))
}
