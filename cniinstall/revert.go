// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"fmt"
)

// CheckRevert says what Revert would undo, and what it would leave.
func (i Install) CheckRevert(ctx context.Context) ([]string, error) {
	changes, err := i.Journal.CheckUndo(ctx, Handler{ConfDir: i.ConfDir})
	if err != nil {
		return changes, fmt.Errorf("check what CNI installation to revert: %w", err)
	}
	return changes, nil
}

// Revert puts back what earlier Applies have recorded in Journal, as [Handler]
// says.
func (i Install) Revert(ctx context.Context) error {
	if err := i.Journal.Undo(ctx, Handler{ConfDir: i.ConfDir}); err != nil {
		return fmt.Errorf("revert the CNI installation: %w", err)
	}
	return nil
}
