// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir

import (
	"context"

	"github.com/slipway-dev/slipway/configresolve"
)

// WriteStep is Write that calls step before each change it makes.
func WriteStep(ctx context.Context, dir string, c *configresolve.Config, step func(string)) (bool, error) {
	return job{dir: dir, want: c.Data(), step: step}.run(ctx)
}

// ApplyStep is Dir.Apply that calls step before each change it makes to the
// layout.
func ApplyStep(ctx context.Context, d Dir, step func(string)) error {
	j := d.job()
	j.step = step
	_, err := j.run(ctx)
	return err
}

// RevertStep is Dir.Revert that calls step before each change it makes to the
// layout.
func RevertStep(ctx context.Context, d Dir, step func(string)) error {
	return d.Journal.Undo(ctx, Handler{step})
}

// SyncFiles waits until the disk has all files, for so many at once.
var SyncFiles = syncFiles
