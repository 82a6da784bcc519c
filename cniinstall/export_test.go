// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import "context"

// Render renders c onto a network in dir, where no file is ours.
func (c Chained) Render(ctx context.Context, dir string) ([]byte, error) {
	return RenderIn(ctx, c, Install{ConfDir: dir, BackupSuffix: defaultBackupSuffix})
}

// RenderIn calls c.Render within an Install with these names.
func RenderIn(ctx context.Context, c Chained, i Install) ([]byte, error) {
	return c.renderIn(ctx, i.directory(recorded{}))
}

// Render renders a.
func (a Agent) Render(ctx context.Context) ([]byte, error) { return a.renderIn(ctx, directory{}) }

// EditList edits a file as that of another CNI is edited.
func EditList(ctx context.Context, path string, edit func(raw string) string) error {
	return again(func() error {
		return editList(ctx, path, func(l listText) listText { return listText(edit(string(l))) })
	})
}
