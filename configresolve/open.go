// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/slipway-dev/slipway/internal/filemode"
)

// openRegular opens a file for reading and refuses what is none. It looks
// first, since opening a device may have an effect, and does not wait for a
// writer, should a FIFO have come in its place since.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := refuseSpecial(path, info); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	if _, err := regular(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// regular describes an open file, which must be a regular one.
func regular(f *os.File) (fs.FileInfo, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return info, refuseSpecial(f.Name(), info)
}

func refuseSpecial(path string, info fs.FileInfo) error {
	if mode := info.Mode(); !mode.IsRegular() {
		return fmt.Errorf("%s is a %s, not a regular file", path, filemode.Type(mode))
	}
	return nil
}
