// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import "context"

// RenderIn calls c.Render within an Install with these names.
func RenderIn(ctx context.Context, c Chained, i Install) ([]byte, error) {
	return c.renderIn(ctx, i.folder())
}

// Missing is a missing.
type Missing = missing

// LastChange is lastChange.
var LastChange = lastChange

// Listing is a listing.
type Listing struct{ listing }

// Read calls read.
func (l *Listing) Read(ctx context.Context, dir string, counts func(string) bool) ([]string, error) {
	return l.read(ctx, dir, counts)
}
