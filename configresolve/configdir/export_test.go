// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir

import (
	"context"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/configresolve"
)

// WriteStep is Write, but calls step before each change it makes.
func WriteStep(ctx context.Context, dir string, c *configresolve.Config, step func(string)) (bool, error) {
	return job{dir: dir, want: c.Data(), step: step}.run(ctx)
}

// ApplyStep is Writer.Apply, but calls step before each change it makes to the layout.
func ApplyStep(ctx context.Context, d Writer, step func(string)) error {
	j := d.job(ctx)
	j.step = step
	_, err := j.run(ctx)
	return err
}

// RevertStep undoes what the context's step has recorded, and calls step before each change it
// makes to the layout.
func RevertStep(ctx context.Context, step func(string)) error {
	return journal.From(ctx).Undo(ctx, Handler{step})
}
