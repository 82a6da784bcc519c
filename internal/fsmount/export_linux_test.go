// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount

import "golang.org/x/sys/unix"

// Crosses tells whether path is the top of a mount as on Linux before 5.8.
func Crosses(path string) (bool, error) {
	fd, err := openPath(path)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	id, err := mountID(fd)
	if err != nil {
		return false, err
	}
	return crosses(fd, path, id)
}
