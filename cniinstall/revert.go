// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"fmt"
)

// CheckRevert says what Revert would undo. The error says what it would not.
func (i Install) CheckRevert(ctx context.Context) ([]string, error) {
	changes, err := i.Journal.CheckUndo(ctx, Handler{ConfDir: i.ConfDir})
	if err != nil {
		return changes, fmt.Errorf("check what CNI installation to revert: %w", err)
	}
	return changes, nil
}

// Revert undoes what earlier Applies have recorded in Journal, as described at
// [Handler].
func (i Install) Revert(ctx context.Context) error {
	if err := i.Journal.Undo(ctx, Handler{ConfDir: i.ConfDir}); err != nil {
		return fmt.Errorf("revert the CNI installation: %w", err)
	}
	return nil
}
