// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package record

import (
	"fmt"
	"os"
	"strings"
)

const bootIDFile = "/proc/sys/kernel/random/boot_id"

// BootID names the running boot, as in random(4): mounts, links and what lies
// on a tmpfs of another boot are gone by themselves.
func BootID() (string, error) {
	id, err := os.ReadFile(bootIDFile)
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
