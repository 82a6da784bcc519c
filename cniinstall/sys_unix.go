// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package cniinstall

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// hasModes: files have permissions and owners, and can be renamed while open.
const hasModes = true

// appearance describes the file at path without reading it. Each write changes the
// time of change, which no program can set; a folder's times change with each
// temporary file, and do not count.
func appearance(path string) string {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err.Error()
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return fmt.Sprint(st.Dev, st.Ino)
	}
	return fmt.Sprint(st.Dev, st.Ino, st.Mode, st.Uid, st.Gid, st.Size, st.Mtim.Nano(), st.Ctim.Nano())
}

// clockTick is longer than a tick of the clock by which the kernel dates changes of
// files: two within one may have the same time. It is 10 ms at most.
const clockTick = 100 * time.Millisecond

// lastChange identifies a folder and its last change. Settled means that a name that
// comes or goes from now on makes another one: the last was not in this tick.
func lastChange(dir string) (description string, settled bool) {
	var st unix.Stat_t
	var now unix.Timeval // the kernel's own, whatever time a test has
	if err := unix.Stat(dir, &st); err != nil {
		return err.Error(), false
	}
	if err := unix.Gettimeofday(&now); err != nil {
		return err.Error(), false
	}
	since := time.Duration(now.Nano() - st.Ctim.Nano())
	return fmt.Sprint(st.Dev, st.Ino, st.Mtim.Nano(), st.Ctim.Nano()), since.Abs() > clockTick
}
