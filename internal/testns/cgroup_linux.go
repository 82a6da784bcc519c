// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package testns

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/mountinfo"
)

const cgroupPrefix = "slipway-node-"

// cgroup is a directory of the machine's cgroup2, locked (flock) while it is in use, so
// that those of dead processes can be recognised; and, if the node has the hierarchies of
// version 1 too, a directory of that name in each.
type cgroup struct {
	path   string
	dir    *os.File
	first  []hierarchy // of version 1
	joined []*os.File  // their files "tasks"
	init   *os.File    // where the node's processes are; if nil, in dir
}

func (c *cgroup) processes() *os.File {
	if c.init != nil {
		return c.init
	}
	return c.dir
}

func newCgroup(controllers bool) (*cgroup, error) {
	mounts, err := mountinfo.Read()
	if err != nil {
		return nil, fmt.Errorf("find cgroup2: %w", err)
	}
	at := slices.IndexFunc(mounts, func(m mountinfo.Mount) bool { return m.FSType == "cgroup2" })
	if at < 0 {
		return nil, fmt.Errorf("no cgroup2 is mounted (the node needs one: mount -t cgroup2 none /mnt): %w", errors.ErrUnsupported)
	}
	root, first := mounts[at].Point, hierarchies(mounts)
	sweep(root, first)
	for range 10 { // another process's sweep may remove it before it is locked
		path, err := os.MkdirTemp(root, cgroupPrefix)
		if err != nil {
			return nil, fmt.Errorf("make a cgroup (needs a writable cgroup2): %w", err)
		}
		dir, err := lockDir(path)
		if err != nil {
			continue
		}
		c := &cgroup{path: path, dir: dir}
		if controllers {
			err = c.addFirst(first)
		}
		if err != nil {
			return nil, errors.Join(err, c.remove())
		}
		return c, nil
	}
	return nil, fmt.Errorf("make a cgroup in %s: it keeps being removed", root)
}

// lockDir locks path for this process, unless another process has locked it or it is
// gone.
func lockDir(path string) (*os.File, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		_, err = os.Lstat(path)
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// sweep removes the cgroups of dead processes. It ignores those that cannot be removed,
// which are in use.
func sweep(root string, first []hierarchy) {
	paths, _ := filepath.Glob(filepath.Join(root, cgroupPrefix+"*"))
	for _, path := range paths {
		if dir, err := lockDir(path); err == nil {
			_ = (&cgroup{path: path, first: first}).removeAll()
			_ = dir.Close()
		}
	}
	for _, h := range first {
		paths, _ := filepath.Glob(filepath.Join(h.point, cgroupPrefix+"*"))
		for _, path := range paths {
			// It is made after the one of cgroup2, and removed before it.
			if _, err := os.Lstat(filepath.Join(root, filepath.Base(path))); errors.Is(err, fs.ErrNotExist) {
				_ = removeTree(path)
			}
		}
	}
}

// removeAll removes the directory of cgroup2 last, since its lock shows that a process is
// working on it.
func (c *cgroup) removeAll() error {
	for _, h := range c.first {
		if err := removeTree(filepath.Join(h.point, filepath.Base(c.path))); err != nil {
			return err
		}
	}
	return removeTree(c.path)
}

// remove removes the cgroup and those that the node made below. The kernel may release
// the last process a moment late.
func (c *cgroup) remove() error {
	defer c.dir.Close()
	for _, f := range append(c.joined, c.init) {
		defer f.Close() // nil if there is none
	}
	deadline := time.Now().Add(closeTimeout)
	for {
		err := c.removeAll()
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// removeTree removes the cgroup path and those below: a cgroup has no other
// directories, and its files go with it.
func removeTree(path string) error {
	var dirs []string
	_ = filepath.WalkDir(path, func(dir string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			dirs = append(dirs, dir)
		}
		return nil // one that is gone is as it should be, and one that stays keeps those above
	})
	var errs []error
	for _, dir := range slices.Backward(dirs) {
		if err := unix.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove cgroup %s: %w", dir, err))
		}
	}
	return errors.Join(errs...)
}
