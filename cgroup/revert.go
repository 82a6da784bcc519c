// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cgroup

import (
	"context"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/fsmount"
)

// Handler undoes what a [Mount] has recorded: mounts that are not in use, and
// directories that are empty.
type Handler struct {
	// Kernel is the kernel to ask. Zero: the running one.
	Kernel Kernel
}

func (h Handler) inner() fsmount.Handler {
	return fsmount.Handler{Kind: kind, FSType: fstype, Kernel: fsmount.Or(h.Kernel)}
}

// Kinds lists the kinds of entries of cgroup.
func (h Handler) Kinds() []string { return h.inner().Kinds() }

// Owns is an error for what no Mount can have recorded.
func (h Handler) Owns(e journal.Entry) error { return h.inner().Owns(e) }

// Look says what there is to undo about e.
func (h Handler) Look(ctx context.Context, p *journal.Pass, e journal.Entry) (journal.Undo, error) {
	return h.inner().Look(ctx, p, e)
}

// Revert unmounts what Apply mounted, as Journal has it, whatever Path is now,
// and removes the directories that Apply made if they are empty.
//
// A mount that is in use is left, and stays recorded for another time. One that
// is not the recorded one any more is left, reported once and forgotten. Nothing
// recorded: success. No Journal: an error that matches errors.ErrUnsupported.
func (m Mount) Revert(ctx context.Context) error { return m.Journal.Undo(ctx, Handler{m.Kernel}) }

// CheckRevert lists what Revert would do. Its errors are those that Revert
// would return.
func (m Mount) CheckRevert(ctx context.Context) (changes []string, err error) {
	return m.Journal.CheckUndo(ctx, Handler{m.Kernel})
}
