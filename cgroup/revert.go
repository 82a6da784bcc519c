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
	Kernel Mounter
}

func (h Handler) inner() fsmount.Handler {
	return fsmount.Handler{Kind: kind, FSType: fstype, Kernel: fsmount.Or(h.Kernel)}
}

// Kinds lists the kinds of entries of cgroup.
func (h Handler) Kinds() []string { return h.inner().Kinds() }

// Namespaces lists those of the host that the objects are in; none for another Kernel
// than the running one.
func (h Handler) Namespaces() []string { return namespaces(h.Kernel) }

// Owns returns an error if no Mount can have recorded e.
func (h Handler) Owns(e journal.Entry) error { return h.inner().Owns(e) }

// Look says what there is to undo about e.
func (h Handler) Look(ctx context.Context, p *journal.Pass, e journal.Entry) (journal.Undo, error) {
	return h.inner().Look(ctx, p, e)
}

// Find finds the mounts that a Mount has made, by their sources.
func (h Handler) Find(ctx context.Context) ([]journal.Marked, error) { return h.inner().Find(ctx) }
