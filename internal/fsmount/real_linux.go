// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// attributes are the options of a mount, not of its file system, for fsmount(2) and for
// mount(2).
var attributes = map[string]struct{ attr, flag int }{
	"ro":     {unix.MOUNT_ATTR_RDONLY, unix.MS_RDONLY},
	"nosuid": {unix.MOUNT_ATTR_NOSUID, unix.MS_NOSUID},
	"nodev":  {unix.MOUNT_ATTR_NODEV, unix.MS_NODEV},
	"noexec": {unix.MOUNT_ATTR_NOEXEC, unix.MS_NOEXEC},
}

// split separates options into those of the mount and those of the file system.
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

// Unmount unmounts the topmost mount on path, unless it is in use.
func (k Real) Unmount(path string) error {
	return k.UnmountOnly(path, func(mountinfo.Mount) bool { return true })
}

// UnmountOnly is Unmount for a mount for which meant returns true. For another mount the
// error is EINVAL, as for none.
func (Real) UnmountOnly(path string, meant func(mountinfo.Mount) bool) error {
	p, err := openPoint(path)
	if err != nil {
		return err
	}
	defer p.close()
	m, err := p.mount()
	if err == nil && !meant(m) {
		err = unix.EINVAL
	}
	if err == nil {
		err = below(int(p.dir.File().Fd()), p.name, func(target string) error { return unix.Unmount(target, unix.UMOUNT_NOFOLLOW) })
	}
	return pathError("umount", path, err)
}

// Mount makes a file system and attaches it to target.
func (k Real) Mount(source, target, fstype, options string) error {
	return k.Replace(source, target, fstype, options, func() error { return nil })
}

// Replace is Mount after clear has unmounted what is on target. It calls clear when only
// attaching is left to do, so that a mount that cannot be made takes no other's place.
func (Real) Replace(source, target, fstype, options string, clear func() error) error {
	p, err := openPoint(target)
	if err != nil {
		return err
	}
	defer p.close()
	infos, _ := Mounts(Real{}) // a mount without the node's options is better than none
	options = keepOptions(infos, fstype, options)
	fd, err := detached(source, fstype, options)
	old := refused(err)
	if err != nil && !old {
		return err
	}
	defer unix.Close(fd)
	if err := clear(); err != nil {
		return err
	}
	dir, err := p.dir.OpenDir(p.name)
	if err != nil {
		return err
	}
	defer dir.Close()
	at := int(dir.File().Fd())
	if old {
		err = mountOld(at, source, fstype, options)
	} else {
		err = unix.MoveMount(fd, "", at, "", emptyPaths)
	}
	if err != nil {
		return pathError("mount "+fstype, target, err)
	}
	if err = p.settle(fstype); err == nil && old {
		err = p.markOld(fstype, source)
	}
	return err
}

// keepOptions adds the options that the hierarchy of cgroup2 has: each new mount in the
// initial cgroup namespace sets them for all its mounts (cgroups(7), nsdelegate).
func keepOptions(infos []mountinfo.Mount, fstype, options string) string {
	at := slices.IndexFunc(infos, func(m mountinfo.Mount) bool { return m.FSType == cgroup2 })
	if fstype != cgroup2 || at < 0 {
		return options
	}
	kept := slices.DeleteFunc(strings.Split(infos[at].Super, ","), func(o string) bool {
		return o == "rw" || o == "ro" || o == "seclabel" || strings.ContainsAny(o, `="`) // SELinux's, as a context
	})
	return strings.Join(append(kept, options), ",")
}

// emptyPaths makes move_mount(2) take descriptors.
const emptyPaths = unix.MOVE_MOUNT_F_EMPTY_PATH | unix.MOVE_MOUNT_T_EMPTY_PATH

// refused reports whether a call is not available. A seccomp profile that does not know
// it returns ENOSYS or EPERM. The kernel returns EPERM without the capability, and then
// mount(2) does so too.
func refused(err error) bool { return errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) }

// detached makes a detached mount, if move_mount(2) can attach it: that is tried first,
// with invalid descriptors.
func detached(source, fstype, options string) (fd int, err error) {
	if err := unix.MoveMount(-1, "", -1, "", emptyPaths); refused(err) {
		return -1, pathError("move_mount", fstype, err)
	}
	ctx, err := unix.Fsopen(fstype, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, pathError("fsopen", fstype, err)
	}
	defer unix.Close(ctx)
	attr, _, rest := split(options)
	for _, o := range append(rest, "source="+source) {
		if err := configure(ctx, o); err != nil {
			return -1, pathError("fsconfig "+o, fstype, err)
		}
	}
	taken, err := tookSource(ctx, fstype, source)
	if err != nil {
		return -1, pathError("fsconfig source", fstype, err)
	}
	if err := unix.FsconfigCreate(ctx); err != nil {
		return -1, pathError("fsconfig create", fstype, err)
	}
	if fd, err = unix.Fsmount(ctx, unix.FSMOUNT_CLOEXEC, attr); err != nil {
		return -1, pathError("fsmount", fstype, err)
	}
	if taken {
		return fd, nil
	}
	if err := markDir(fd, source); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// tookSource reports whether the file system being configured has accepted its source.
// Linux before 5.19 silently ignores it for a bpffs; an accepted one is refused the
// second time. In a cgroup2, a mark would be a cgroup.
func tookSource(ctx int, fstype, source string) (bool, error) {
	if fstype != "bpf" {
		return true, nil
	}
	err := unix.FsconfigSetString(ctx, "source", source)
	if errors.Is(err, unix.EINVAL) {
		return true, nil
	}
	return false, err
}

// markDir makes an empty directory that stands for the source in the bpffs of fd, to
// recognise it by.
func markDir(fd int, source string) error {
	return pathError("mkdir", source, unix.Mkdirat(fd, directoryOf(source), 0o700))
}

func configure(ctx int, option string) error {
	if key, value, ok := strings.Cut(option, "="); ok {
		return unix.FsconfigSetString(ctx, key, value)
	}
	return unix.FsconfigSetFlag(ctx, option)
}

// mountOld makes a mount and attaches it to the open directory at in one call, mount(2).
func mountOld(at int, source, fstype, options string) error {
	_, flag, rest := split(options)
	return below(at, ".", func(target string) error {
		return unix.Mount(source, target, fstype, uintptr(flag), strings.Join(rest, ","))
	})
}
