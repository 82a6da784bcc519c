// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/mountinfo"
	"github.com/slipway-dev/slipway/internal/remedy"
	"github.com/slipway-dev/slipway/mount"
)

// write mounts, or unmounts what was made here and is on top. If several calls run at once,
// even in several processes, one of them mounts and the others find that mount.
func (s System) write(_ context.Context, path string, to ledger.State) error {
	k := Or(s.Kernel)
	if to.IsZero() {
		return s.unmount(k, path, to.Over())
	}
	options := "nosuid,nodev,noexec"
	if to.Mode != 0 {
		options += fmt.Sprintf(",mode=%o", to.Mode)
	}
	err := s.mount(k, newSource(to.Value), path, options)
	isRace := func(errno syscall.Errno) bool { return errors.Is(err, errno) } // the others are of one who has lost it
	if isRace(syscall.EBUSY) || isRace(syscall.EINVAL) || isRace(syscall.ENOENT) {
		if p, lookErr := Look(k, path); lookErr == nil && p.Shows(s.FSType) {
			return nil // another process was first
		}
	}
	return hint(s.FSType, err)
}

// mount mounts, in the place of cgroup2 mounts with another root. A kernel that can do so
// unmounts those last.
func (s System) mount(k mount.Mounter, source, path, options string) error {
	clear := func() error { return nil }
	if s.FSType == cgroup2 {
		clear = func() error { return clearOtherRoots(k, path) }
	}
	if replacer, ok := k.(interface {
		Replace(source, target, fstype, options string, clear func() error) error
	}); ok {
		return replacer.Replace(source, path, s.FSType, options, clear)
	}
	if err := clear(); err != nil {
		return err
	}
	return k.Mount(source, path, s.FSType, options)
}

// maxStacked is how many mounts are taken off one path.
const maxStacked = 16

// clearOtherRoots unmounts only the cgroup2 mounts on path with another root. The error
// matches EBUSY if there is one with the host's: it lay below, or another process made it.
func clearOtherRoots(k mount.Mounter, path string) (err error) {
	for n := 0; err == nil; n++ {
		if n == maxStacked {
			return fmt.Errorf("more than %d mounts on one path", maxStacked)
		}
		err = unmountOnly(k, path, func(m mountinfo.Mount) bool { return m.FSType == cgroup2 && !m.Whole() })
	}
	if !errors.Is(err, syscall.EINVAL) {
		return fmt.Errorf("unmount the cgroup2 with another root: %w (if it is busy, stop the processes that use it first)", err)
	}
	p, err := Look(k, path)
	switch {
	case err != nil || p.Mount == "" || p.FSType != cgroup2:
		return err
	case p.Shows(cgroup2):
		return fmt.Errorf("a cgroup2 with the host's root is there: %w", syscall.EBUSY)
	}
	return fmt.Errorf("unmount the cgroup2 with another root: %w (it is locked, or is being exchanged)", syscall.EINVAL)
}

// unmount unmounts the visible mount if it was made here, and is the one that was read: another
// process may have exchanged it meanwhile.
func (s System) unmount(k mount.Mounter, path, read string) error {
	was, _ := cutIdentity(read)
	err := hint(s.FSType, unmountOnly(k, path, func(m mountinfo.Mount) bool {
		source, err := sourceOf(k, m)
		return err == nil && m.FSType == s.FSType && isOurs(source) && (read == "" || source == was)
	}))
	switch {
	case errors.Is(err, syscall.EBUSY):
		return fmt.Errorf("%w (a process has a file or its working directory there, or something is mounted below)", err)
	case errors.Is(err, syscall.EINVAL):
		if p, lookErr := Look(k, path); lookErr == nil && p.Mount == "" {
			return nil // it has gone
		}
	}
	return err
}

// unmountOnly unmounts the topmost mount on path if it is meant, as far as the kernel can
// identify it.
func unmountOnly(k mount.Mounter, path string, meant func(mountinfo.Mount) bool) error {
	if only, ok := k.(interface {
		UnmountOnly(path string, meant func(mountinfo.Mount) bool) error
	}); ok {
		return only.UnmountOnly(path, meant)
	}
	infos, err := Mounts(k)
	if on := mountinfo.On(infos, path); err == nil && (len(on) == 0 || !meant(on[len(on)-1])) {
		err = pathError("umount", path, syscall.EINVAL)
	}
	if err != nil {
		return err
	}
	return k.Unmount(path)
}

// hint names the cause if the kernel's error does not.
func hint(fstype string, err error) error {
	if errors.Is(err, syscall.ENODEV) {
		return remedy.Add(err, fmt.Sprintf("this kernel has no %s file system: %s", fstype,
			map[string]string{"bpf": "CONFIG_BPF_SYSCALL", "cgroup2": "CONFIG_CGROUPS"}[fstype]))
	}
	return remedy.Capabilities(err, map[string]string{"bpf": "in the initial user namespace"}[fstype], remedy.SysAdmin)
}
