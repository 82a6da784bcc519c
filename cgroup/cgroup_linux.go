// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cgroup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/input"
)

func detect(path string) (layout string, err error) {
	magic, err := magicOf(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("cgroup layout: %w", err)
	case magic == unix.CGROUP2_SUPER_MAGIC:
		return "unified", nil
	case magic != unix.TMPFS_MAGIC:
		return "", fmt.Errorf("cgroup layout: %s is neither cgroup2 nor a tmpfs with cgroup hierarchies (file system type %#x)", path, magic)
	}
	magic, err = magicOf(filepath.Join(path, "unified"))
	switch {
	case err == nil && magic == unix.CGROUP2_SUPER_MAGIC:
		return "hybrid", nil
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("cgroup layout: %w", err)
	}
	found, err := holdsV1(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("cgroup layout: %w", err)
	case !found:
		return "", fmt.Errorf("cgroup layout: %s is a tmpfs without a cgroup hierarchy in it", path)
	}
	return "v1", nil
}

// holdsV1 reports whether a v1 hierarchy is mounted in a directory of path.
func holdsV1(path string) (bool, error) {
	dir, err := input.OpenDir(path)
	if err != nil {
		return false, err
	}
	defer dir.Close()
	for name, err := range input.Names(dir) {
		if err != nil {
			return false, err
		}
		magic, err := magicOf(filepath.Join(path, name))
		if err == nil && magic == unix.CGROUP_SUPER_MAGIC {
			return true, nil
		}
	}
	return false, nil
}

func magicOf(path string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	return int64(s.Type) & 0xffffffff, nil // a signed 32-bit number on some architectures
}

func id(path string) (uint64, error) {
	f, err := open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	handle, _, err := unix.NameToHandleAt(int(f.Fd()), "", unix.AT_EMPTY_PATH)
	if err != nil {
		return 0, fmt.Errorf("cgroup id: %w", &os.PathError{Op: "name_to_handle_at", Path: path, Err: err})
	}
	if len(handle.Bytes()) != 8 {
		return 0, fmt.Errorf("cgroup id: %s has a handle of %d bytes, not 8", path, len(handle.Bytes()))
	}
	return binary.NativeEndian.Uint64(handle.Bytes()), nil
}

func open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, unix.O_DIRECTORY|os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("cgroup: %w", err)
	}
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &s); err != nil {
		return nil, errors.Join(&os.PathError{Op: "statfs", Path: path, Err: err}, f.Close())
	}
	if magic := int64(s.Type) & 0xffffffff; magic != unix.CGROUP2_SUPER_MAGIC {
		return nil, errors.Join(fmt.Errorf("cgroup %s: %w: type %#x, not cgroup2", path, ErrForeign, magic), f.Close())
	}
	return f, nil
}
