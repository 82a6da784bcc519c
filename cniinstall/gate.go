// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/internal/input"
)

// gateFile is the key of Cilium's configuration that lets an agent's pod
// uninstall when it stops.
const gateFile = "cni-uninstall"

// UninstallEnabled reports whether an agent's configuration, mounted at
// configDir as one file a key, lets a pod that stops take the CNI installation
// away: the file cni-uninstall says "true", white space around it aside. If
// the file is missing or says anything else, an upgrade may be under way and
// the installation stays.
func UninstallEnabled(configDir string) (bool, error) {
	said, err := input.ReadFile(context.Background(), filepath.Join(configDir, gateFile), input.MaxFlags)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("whether to uninstall CNI: %w", err)
	}
	return strings.TrimSpace(string(said)) == "true", nil
}
