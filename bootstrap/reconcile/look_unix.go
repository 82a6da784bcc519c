// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package reconcile

import (
	"strings"

	"golang.org/x/sys/unix"
)

func lookAt(path string) appearance {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return appearance{path: path, err: err.Error()}
	}
	a := appearance{path: path, device: uint64(st.Dev), inode: uint64(st.Ino), mode: uint32(st.Mode), uid: st.Uid, gid: st.Gid}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || strings.HasSuffix(path, "/") {
		a.size, a.modified, a.changed = st.Size, st.Mtim.Nano(), st.Ctim.Nano()
	}
	return a
}
