// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package record

import (
	"fmt"
	"os"
	"strings"
)

// BootIDPath is the file that names the running boot, as in random(4).
const BootIDPath = "/proc/sys/kernel/random/boot_id"

// BootID names the running boot: mounts, links and what lies on a tmpfs of
// another boot are gone by themselves.
func BootID() (string, error) { return ReadBootID(os.ReadFile) }

// ReadBootID is BootID for a kernel whose files are read by read.
func ReadBootID(read func(path string) ([]byte, error)) (string, error) {
	id, err := read(BootIDPath)
	if err != nil {
		return "", fmt.Errorf("boot id: %w", err)
	}
	return strings.TrimSpace(string(id)), nil
}

// Outlived reports whether a reboot has taken away what e records, so that
// there is nothing to undo and what is in its place is somebody else's.
func (e Entry) Outlived() (bool, error) {
	if e.Boot == "" {
		return false, nil
	}
	boot, err := BootID()
	return boot != e.Boot, err
}
