// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/record"
)

// timekeepers are the file systems whose times are to be relied on: kept by this
// kernel, in nanoseconds, and changed with every change of content. With tmpfs
// that is not so for memory that is mapped, and what an overlay is made of
// cannot be told from it.
var timekeepers = map[uint32]bool{
	unix.EXT4_SUPER_MAGIC:  true, // ext2 and ext3 too, of which some keep seconds only
	unix.XFS_SUPER_MAGIC:   true,
	unix.BTRFS_SUPER_MAGIC: true,
	unix.F2FS_SUPER_MAGIC:  true,
}

// sight is what is seen of a file without reading it. Its content cannot change
// without it: the times follow each write, the second one cannot be set back,
// and a file that takes the place of another is another one, or later. That
// holds until the next boot: a crash may keep what was written and lose the time
// of it, and what repairs a file system does not set times.
type sight struct {
	boot              string
	inode             uint64
	size              int64
	modified, changed unix.Timespec
}

// String is what goes into the record.
func (s sight) String() string {
	return fmt.Sprintf("boot %s, inode %d, %d bytes, modified %d.%09d, changed %d.%09d",
		s.boot, s.inode, s.size, s.modified.Sec, s.modified.Nsec, s.changed.Sec, s.changed.Nsec)
}

// see looks at an open file. Nothing is seen where times are not to be relied on.
func see(f *os.File) (s sight, ok bool) {
	var st unix.Stat_t
	var on unix.Statfs_t
	fd := int(f.Fd())
	if unix.Fstat(fd, &st) != nil || unix.Fstatfs(fd, &on) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return sight{}, false
	}
	boot, err := record.BootID()
	if err != nil || !timekeepers[uint32(on.Type)] { // the type's width is the architecture's
		return sight{}, false
	}
	s = sight{boot: boot, inode: st.Ino, size: st.Size, modified: st.Mtim, changed: st.Ctim}
	return s, st.Mtim.Nsec != 0 || st.Ctim.Nsec != 0
}

// settle waits until any change of the file would give it other times than it
// has: the clock for files ticks some hundred times a second. It is false where
// that does not happen, since the clock was set back, say.
func (s sight) settle() bool {
	for range 20 {
		var now unix.Timespec
		if unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now) != nil {
			return false
		}
		if now.Nano() > max(s.modified.Nano(), s.changed.Nano()) {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}
