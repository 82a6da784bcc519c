// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/durable"
)

// usable returns an error if a plugin in the directory, or in one made there, could
// not be written or executed.
func usable(dir string) error {
	nearest, err := durable.Writable(dir)
	if errors.Is(err, unix.EROFS) {
		return unusable(dir, "is on a file system mounted read-only")
	}
	var st unix.Statfs_t
	if unix.Statfs(nearest, &st) == nil && st.Flags&unix.ST_NOEXEC != 0 {
		return unusable(dir, "is on a file system mounted noexec")
	}
	return notWritable(dir, err)
}
