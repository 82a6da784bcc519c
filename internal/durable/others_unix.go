// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package durable

import (
	"fmt"
	"os"
	"syscall"

	"github.com/slipway-dev/slipway/internal/filemode"
)

// OthersMayWrite says why somebody other than root and this process's user may
// change what is in the directory: "" if nobody may, or the system does not tell.
func (d *Dir) OthersMayWrite() (why string) {
	info, err := d.Stat()
	if err != nil {
		return ""
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	mode := filemode.Unix(info.Mode())
	switch foreignGroup := ok && st.Gid != 0 && int(st.Gid) != os.Getegid(); {
	case !ok:
		return ""
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return fmt.Sprintf("it belongs to uid %d", st.Uid)
	case mode&0o002 != 0:
		return fmt.Sprintf("it has mode %04o", mode)
	case mode&0o020 != 0 && foreignGroup:
		return fmt.Sprintf("it has mode %04o and group %d", mode, st.Gid)
	}
	return ""
}
