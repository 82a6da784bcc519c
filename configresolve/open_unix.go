// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build unix

package configresolve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/record"
)

// nonblock lets an open of a FIFO return, whether it has a writer or not.
const nonblock = unix.O_NONBLOCK

// chown gives name the owner that s says, and asks for nothing if it has it.
func chown(root *os.Root, name string, s record.State) error {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) == s.UID && int(st.Gid) == s.GID {
		return nil
	}
	err = root.Lchown(name, s.UID, s.GID)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w (%w)", err, errNeedsChown)
	}
	return err
}
