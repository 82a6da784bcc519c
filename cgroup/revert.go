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
	// Kernel is the kernel to call. If nil, it is the running one.
	Kernel Kernel
}

func (h Handler) inner() fsmount.Handler {
	return fsmount.Handler{Kind: kind, FSType: fstype, Kernel: fsmount.Or(h.Kernel)}
}

// Kinds lists the kinds of entries of cgroup.
func (h Handler) Kinds() []string { return h.inner().Kinds() }

// Owns returns an error if no Mount can have recorded e.
func (h Handler) Owns(e journal.Entry) error { return h.inner().Owns(e) }

// Look says what there is to undo about e.
func (h Handler) Look(ctx context.Context, p *journal.Pass, e journal.Entry) (journal.Undo, error) {
	return h.inner().Look(ctx, p, e)
}

// Find finds the mounts that a Mount has made, by their sources.
func (h Handler) Find(ctx context.Context) ([]journal.Marked, error) { return h.inner().Find(ctx) }

// Revert unmounts what Apply has mounted according to Journal, whatever Path is
// now, and removes the directories that Apply made if they are empty.
//
// A mount that is in use is not unmounted, and remains recorded, so that Revert can
// be tried again. A mount that is no longer the recorded one is not touched, and
// remains recorded as kept. If nothing is recorded, Revert succeeds.
// Without a Journal, it returns an error that matches errors.ErrUnsupported.
func (m Mount) Revert(ctx context.Context) error { return m.Journal.Undo(ctx, Handler{m.Kernel}) }

// CheckRevert lists what Revert would do. Its errors are those that Revert
// would return.
func (m Mount) CheckRevert(ctx context.Context) (changes []string, err error) {
	return m.Journal.CheckUndo(ctx, Handler{m.Kernel})
}
