// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/mountinfo"
	"github.com/slipway-dev/slipway/mount"
)

// Mounts lists the mounts that the calling thread sees.
func Mounts(k mount.Mounter) ([]mountinfo.Mount, error) {
	mounts, err := readMounts(k, mountinfo.Path)
	if !errors.Is(err, fs.ErrNotExist) {
		return mounts, err
	}
	// A /proc of another pid namespace, as in a node that was entered from outside: its
	// pid 1 has the same list, if it sees the thread's root.
	mounts, oneErr := readMounts(k, mountinfo.InitPath)
	_, _, root, statErr := k.Stat("/")
	if oneErr != nil || statErr != nil || !slices.ContainsFunc(mounts, func(m mountinfo.Mount) bool { return is(m, root) }) {
		return nil, err
	}
	return mounts, nil
}

// SharedWithInit reports whether pid 1 has a mount in the peer group of m. If its mounts
// cannot be read, it returns true.
func SharedWithInit(k mount.Mounter, m mountinfo.Mount) bool {
	mounts, err := readMounts(k, mountinfo.InitPath)
	return err != nil || slices.ContainsFunc(mounts, func(other mountinfo.Mount) bool { return other.Group() == m.Group() })
}

func readMounts(k mount.Mounter, path string) ([]mountinfo.Mount, error) {
	f, err := k.Open(path)
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	defer f.Close()
	return mountinfo.Parse(f)
}

// is reports whether m has the identity that [mount.Mounter].Stat returned.
func is(m mountinfo.Mount, identity string) bool {
	id, _, _ := strings.Cut(identity, " ")
	return id == fmt.Sprintf("id=%d", m.ID)
}

func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}
