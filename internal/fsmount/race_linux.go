// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// settle makes sure that only one mount stays. If several processes mount at once, all
// mounts get attached, one on top of the other, and no call prevents it. So each process
// unmounts all that lie on top of the lowest, by a descriptor: that removes the topmost of
// the mounts on it, or its own, and never one below. A process that has unmounted one does
// not know whether its own was the lowest.
func (p point) settle(fstype string) error {
	for gave := false; ; gave = true {
		over, err := p.stackedMount(fstype)
		switch {
		case err != nil:
			return err
		case over >= 0:
			err = detach(over, p.dir.Path(p.name))
			_ = unix.Close(over) // nothing was written
			if err != nil {
				return err
			}
		case gave:
			return pathError("mount", p.dir.Path(p.name), unix.EBUSY)
		default:
			return nil
		}
	}
}

// stackedMount opens the topmost mount, if it lies on top of another of the type; -1 if
// it does not, or if another object has taken its place.
func (p point) stackedMount(fstype string) (int, error) {
	fd, err := p.open()
	if err != nil {
		return -1, err
	}
	s, err := describe(fd, p.dir.Path(p.name))
	if err == nil && s.isMount() && s.fstype == fstype {
		infos, listErr := Mounts(Real{})
		if listErr == nil && stacked(infos, s.id) {
			return fd, nil
		}
	}
	_ = unix.Close(fd) // nothing was written
	return -1, err
}

// stacked reports whether the mount lies on top of another of its type on the same path.
func stacked(infos []mountinfo.Mount, id uint64) bool {
	own, _ := byID(infos, id)
	under, ok := byID(infos, uint64(own.Parent))
	return ok && own.ID != under.ID && under.Point == own.Point && under.FSType == own.FSType
}

func detach(fd int, path string) error {
	err := below(fd, ".", func(target string) error { return unix.Unmount(target, unix.MNT_DETACH) })
	if errors.Is(err, unix.EINVAL) {
		return nil // no longer mounted
	}
	return pathError("unmount the stacked mount from", path, err)
}

func byID(infos []mountinfo.Mount, id uint64) (mountinfo.Mount, bool) {
	for _, i := range infos {
		if uint64(i.ID) == id {
			return i, true
		}
	}
	return mountinfo.Mount{}, false
}
