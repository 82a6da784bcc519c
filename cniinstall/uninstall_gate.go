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

// UninstallEnabled reports whether an agent's configuration, mounted at configDir
// with one file for each key, allows a stopping pod to remove the CNI installation:
// it does if the file cni-uninstall contains "true", apart from white space around
// it. If the file is missing or contains anything else, an upgrade may be under
// way, and the installation must not be removed.
func UninstallEnabled(configDir string) (bool, error) {
	if configDir == "" {
		return false, errors.New("cannot tell whether to uninstall CNI: no directory of the agent's configuration given")
	}
	said, err := input.ReadFile(context.Background(), filepath.Join(configDir, gateFile), input.MaxFlags)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot tell whether to uninstall CNI: %w", err)
	}
	return strings.TrimSpace(string(said)) == "true", nil
}
