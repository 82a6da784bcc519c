// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"errors"
)

// Effective returns the settings that systemd reads from dirs, or from its own
// directories; the error also lists the files that systemd may read differently.
func Effective(dirs ...string) ([]assignment, error) {
	if len(dirs) == 0 {
		dirs = systemdDirs()
	}
	all, odd, err := effective(context.Background(), dirs, "", nil)
	for _, line := range odd {
		err = errors.Join(err, errors.New(line))
	}
	return all, err
}
