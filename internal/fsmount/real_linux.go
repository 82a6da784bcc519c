// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount

import (
	"errors"
	"io/fs"
	"os"
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
		return pathError("move_mount", path, raced(path, err))
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
		if err := configure(ctx, o); err != nil {
			return -1, pathError("fsconfig "+o, fstype, err)
		}
	}
	if err := unix.FsconfigCreate(ctx); err != nil {
		return -1, pathError("fsconfig create", fstype, err)
	}
	fd, err = unix.Fsmount(ctx, unix.FSMOUNT_CLOEXEC, attr)
	return fd, pathError("fsmount", fstype, err)
}

func configure(ctx int, option string) error {
	if key, value, ok := strings.Cut(option, "="); ok {
		return unix.FsconfigSetString(ctx, key, value)
	}
	return unix.FsconfigSetFlag(ctx, option)
}

func mountOld(path, fstype, options string, before func(root, mount string) error) error {
	if err := before("", ""); err != nil {
		return err
	}
	_, flag, rest := split(options)
	if err := unix.Mount(fstype, path, fstype, uintptr(flag), strings.Join(rest, ",")); err != nil {
		return pathError("mount "+fstype, path, raced(path, err))
	}
	return settleOld(path)
}

func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}
