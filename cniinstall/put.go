// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"errors"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/durable"
)

const dirMode = 0o755

// put makes the change that the target needs in its directory d.
func (t *target) put(d *durable.Dir) error {
	if t.staged != nil {
		return t.staged.publish()
	}
	f, err := d.Open(t.name())
	if err != nil {
		return hint(err)
	}
	defer f.Close()
	if err := setAttributes(f, t); err != nil {
		return hint(err)
	}
	return f.Sync()
}

// removeDirs removes the directories that a failed run made.
func (j *job) removeDirs(ctx context.Context) error {
	for _, t := range j.targets() {
		t.staged.discard()
	}
	var errs []error
	for _, dir := range slices.Backward(j.dirs) {
		if err := durable.Remove(dir); err != nil {
			continue // another program has put a file there: it stays, and stays recorded
		}
		e, begun, err := j.journal.Lookup(ctx, kindDir, dir)
		if errs = append(errs, err); begun {
			errs = append(errs, j.journal.Forget(ctx, journal.Entry{Kind: e.Kind, Object: e.Object}))
		}
	}
	return errors.Join(errs...)
}
