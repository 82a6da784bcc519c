// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package record

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// BootOf names the boot with which what is in dir goes away: the running one
// if dir is kept in memory, else "".
func BootOf(dir string) (string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", fmt.Errorf("statfs %s: %w", dir, err)
	}
	switch uint32(st.Type) { // its width is the architecture's
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC:
		return BootID()
	}
	return "", nil
}
