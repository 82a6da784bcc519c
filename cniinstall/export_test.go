// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import "context"

// RenderIn calls c.Render within an Install with these names.
func RenderIn(ctx context.Context, c Chained, i Install) ([]byte, error) {
	return c.renderIn(ctx, i.folder(recorded{}))
}

var (
	ErrUninstalled = errUninstalled
	ErrContested   = errContested
)
