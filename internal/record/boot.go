// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package record

import (
	"fmt"
	"os"
	"strings"
)

const bootIDFile = "/proc/sys/kernel/random/boot_id"

// BootID names the running boot, as in random(4): mounts and links of another
// boot are gone by themselves.
func BootID() (string, error) {
	id, err := os.ReadFile(bootIDFile)
	if err != nil {
		return "", fmt.Errorf("boot id: %w", err)
	}
	return strings.TrimSpace(string(id)), nil
}
