// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package filemode translates modes between Go and Unix, and names types.
package filemode

import "io/fs"

var special = []struct {
	of   fs.FileMode
	unix uint32
}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}}

// Unix returns the mode bits of m as chmod(2) takes them.
func Unix(m fs.FileMode) uint32 {
	mode := uint32(m.Perm())
	for _, s := range special {
		if m&s.of != 0 {
			mode |= s.unix
		}
	}
	return mode
}

// Go returns mode bits of chmod(2) in Go's representation.
func Go(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	for _, s := range special {
		if mode&s.unix != 0 {
			m |= s.of
		}
	}
	return m
}

// Type names the type of an object with mode m.
func Type(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "file"
	case m.IsDir():
		return "directory"
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	case m&fs.ModeNamedPipe != 0:
		return "FIFO"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}
