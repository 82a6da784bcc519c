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

// OthersMayWrite returns why a user other than root and this process's own may change the
// directory's content: "" if none may, or the system does not report it.
func (d *Dir) OthersMayWrite() (why string) {
	info, err := d.Stat()
	if err != nil {
		return ""
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return others(int(st.Uid), int(st.Gid), filemode.Unix(info.Mode()))
	}
	return ""
}

// others returns why users other than root and this process's own may change an object
// with this owner and mode: "" if they may not.
func others(uid, gid int, mode uint32) string {
	switch foreignGroup := gid != 0 && gid != os.Getegid(); {
	case uid != 0 && uid != os.Geteuid():
		return fmt.Sprintf("it belongs to uid %d", uid)
	case mode&0o002 != 0:
		return fmt.Sprintf("it has mode %04o", mode&0o7777)
	case mode&0o020 != 0 && foreignGroup:
		return fmt.Sprintf("it has mode %04o and group %d", mode&0o7777, gid)
	}
	return ""
}
