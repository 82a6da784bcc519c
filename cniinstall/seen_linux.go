// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// timekeepers are the file systems whose times are to be relied on: kept by
// this kernel, in nanoseconds, and changed with every change of content.
var timekeepers = map[int64]bool{
	unix.EXT4_SUPER_MAGIC: true, // ext2 and ext3 too, of which some keep seconds only
	unix.XFS_SUPER_MAGIC:  true, unix.BTRFS_SUPER_MAGIC: true, unix.F2FS_SUPER_MAGIC: true,
	unix.TMPFS_MAGIC: true, unix.OVERLAYFS_SUPER_MAGIC: true,
}

// sight is what is seen of a file without reading it. Content cannot change
// without it: the times follow each write, the second one cannot be set back,
// and a file that takes the place of another is another one, or later.
type sight struct {
	inode             uint64
	size              int64
	modified, changed unix.Timespec
}

// String is what goes into the record.
func (s sight) String() string {
	return fmt.Sprintf("inode %d, %d bytes, modified %d.%09d, changed %d.%09d",
		s.inode, s.size, s.modified.Sec, s.modified.Nsec, s.changed.Sec, s.changed.Nsec)
}

// see looks at an open file. Nothing is seen where times are not to be relied on.
func see(f *os.File) (s sight, ok bool) {
	var st unix.Stat_t
	var on unix.Statfs_t
	fd := int(f.Fd())
	if unix.Fstat(fd, &st) != nil || unix.Fstatfs(fd, &on) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return sight{}, false
	}
	s = sight{inode: st.Ino, size: st.Size, modified: st.Mtim, changed: st.Ctim}
	return s, timekeepers[int64(on.Type)] && (st.Mtim.Nsec != 0 || st.Ctim.Nsec != 0)
}

// settle waits until a write would give the file another time than it has: the
// kernel's clock for files ticks some hundred times a second. It is false where
// that does not happen, since the clock was set back, say.
func (s sight) settle() bool {
	for range 20 {
		var now unix.Timespec
		if unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now) != nil {
			return false
		}
		if now.Nano() > s.modified.Nano() {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

// lookAgain sees the file at path, if it is the one that s is of and has not
// been written since.
func (s sight) lookAgain(path string) (sight, bool) {
	f, err := openThere(path)
	if err != nil {
		return sight{}, false
	}
	defer f.Close()
	now, ok := see(f)
	return now, ok && now.inode == s.inode && now.size == s.size && now.modified == s.modified
}
