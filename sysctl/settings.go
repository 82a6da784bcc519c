// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"errors"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// Settings is an action that sets kernel values and keeps no file: they last
// until the next boot.
type Settings struct {
	// Values are set in this order; globs stand for the keys there are then.
	Values []Setting
	// Kernel is where they are set. Zero: the calling thread's.
	Kernel Kernel
	// Journal is where previous values are noted before they change. Nil:
	// nowhere, and Revert returns an error that matches [errors.ErrUnsupported].
	Journal *journal.Journal
}

// Check lists the values that Apply would set (see [Kernel.Diff]).
func (s Settings) Check(ctx context.Context) ([]string, error) {
	changes, err := s.Kernel.Diff(s.Values...)
	return lines(changes), errors.Join(err, ctx.Err())
}

// Apply sets the values that differ and reads them back (see [Kernel.Set]),
// noting previous ones first, with those of the keys that the kernel changes
// along with them.
func (s Settings) Apply(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.Kernel.converge(ctx, assignments(s.Values), newRecorder(s.Journal))
}

// Revert puts back the values that the step has changed in this boot and that
// are still as it left them; the others stay, and the error names them.
func (s Settings) Revert(ctx context.Context) error {
	return s.Journal.Undo(ctx, Handler{s.Kernel})
}

// CheckRevert lists what Revert would do, and gives the errors that it would.
func (s Settings) CheckRevert(ctx context.Context) ([]string, error) {
	return s.Journal.CheckUndo(ctx, Handler{s.Kernel})
}

func lines(changes []Change) []string {
	var all []string
	for _, c := range changes {
		all = append(all, c.String())
	}
	return all
}
