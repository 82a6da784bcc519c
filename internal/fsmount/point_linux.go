// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount

import (
	"errors"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// point is a mount point, present or wanted: a name in an open directory. The name leads
// to the topmost mount, while the directory that is mounted on, once open, does not.
type point struct {
	dir  *durable.Dir
	name string
}

func openPoint(path string) (point, error) {
	dir, err := durable.OpenDir(filepath.Dir(path))
	return point{dir, filepath.Base(path)}, err
}

func (p point) close() { _ = p.dir.Close() } // nothing was written

// open opens the mount there, or the directory to mount on (O_PATH).
func (p point) open() (fd int, err error) {
	return openAt(int(p.dir.File().Fd()), p.name, p.dir.Path(p.name))
}

// mount describes the topmost mount. The error is EINVAL if there is none.
func (p point) mount() (mountinfo.Mount, error) {
	fd, err := p.open()
	if err != nil {
		return mountinfo.Mount{}, err
	}
	defer unix.Close(fd)
	return mountOf(fd)
}

// mountOf describes the mount whose top is fd.
func mountOf(fd int) (m mountinfo.Mount, err error) {
	s, err := describe(fd, "mount")
	if err != nil {
		return m, err
	}
	infos, err := Mounts(Real{})
	if err != nil {
		return m, err
	}
	m, ok := byID(infos, s.id)
	if !ok || !s.isMount() {
		return m, unix.EINVAL
	}
	return m, nil
}

// markOld marks the new mount, unless the kernel took its source.
func (p point) markOld(fstype, source string) (err error) {
	if fstype != "bpf" {
		return nil
	}
	for range 100 { // another process's may lie on top of it until that process gives way
		if err = p.tryMark(fstype, source); !errors.Is(err, unix.EINVAL) {
			break
		}
	}
	if errors.Is(err, unix.EEXIST) { // by another process that mounted at the same time
		err = pathError("mount", p.dir.Path(p.name), unix.EBUSY)
	}
	return err
}

func (p point) tryMark(fstype, source string) error {
	fd, err := p.open()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	m, err := mountOf(fd)
	if err != nil || m.FSType != fstype || m.Source == source {
		return pathError("mark", p.dir.Path(p.name), err)
	}
	return markDir(fd, source)
}
