// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"context"
	"fmt"
	"strings"

	"github.com/slipway-dev/slipway/internal/input"
)

// bootID identifies the running boot, as in random(4).
func bootID() (string, error) {
	id, err := input.ReadFile(context.Background(), "/proc/sys/kernel/random/boot_id", 128)
	if err != nil {
		return "", fmt.Errorf("boot id: %w", err)
	}
	return strings.TrimSpace(string(id)), nil
}
