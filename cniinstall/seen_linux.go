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
// kernel, in nanoseconds, changed with every change of content and, from 6.13 on,
// never the same for two. With tmpfs that is not so for memory that is mapped, and
// what an overlay is made of cannot be told from it.
var timekeepers = map[uint32]bool{
	unix.EXT4_SUPER_MAGIC:  true, // ext2 and ext3 too, of which some keep seconds only
	unix.XFS_SUPER_MAGIC:   true,
	unix.BTRFS_SUPER_MAGIC: true,
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
// has. The clock for files ticks some hundred times a second, and so long as it
// shows the time of a change another one is given the same. A time between two
// ticks is of a kernel (6.13 and later) that gives one to each change of a file
// that has been looked at.
func (s sight) settle() {
	for range 100 {
		var now unix.Timespec
		if unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now) != nil || now != s.modified && now != s.changed {
			return
		}
		time.Sleep(200 * time.Microsecond)
	}
}

// held is a file that nobody has open for writing: who opens it waits until it is
// released (a read lease, F_SETLEASE of fcntl(2)). It may be renamed meanwhile,
// but while somebody waits it cannot be executed.
type held struct{ file *os.File }

// hold is nil where there is a writer, or no lease, or the file is not as it was
// seen before.
func hold(path string, before sight) *held {
	f, err := openThere(path)
	if err != nil {
		return nil
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_SETOWN, 0) // no SIGIO when somebody waits
	}
	if now, ok := see(f); err != nil || !ok || now != before {
		f.Close()
		return nil
	}
	return &held{file: f}
}

// look is what is seen of the file, once any change will show; nothing where
// somebody waits to write.
func (h *held) look() string {
	if h == nil {
		return ""
	}
	s, ok := see(h.file)
	s.settle()
	if lease, err := unix.FcntlInt(h.file.Fd(), unix.F_GETLEASE, 0); !ok || err != nil || lease != unix.F_RDLCK {
		return ""
	}
	return s.String()
}

// release lets writers in.
func (h *held) release() {
	if h != nil {
		_, _ = unix.FcntlInt(h.file.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
		h.file.Close()
	}
}
