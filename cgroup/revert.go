// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cgroup

import (
	"context"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/mount"
)

// Handler undoes the recorded changes of every [Mount]: it removes mounts that are
// not in use, and directories that are empty.
type Handler struct {
	// Kernel is the kernel to call. If nil, it is the running one.
	Kernel mount.Mounter
}

func (h Handler) inner() fsmount.Handler {
	return fsmount.Handler{Kind: kind, FSType: fstype, Kernel: fsmount.Or(h.Kernel)}
}

// Kinds lists the kinds of entries of cgroup.
func (h Handler) Kinds() []string { return h.inner().Kinds() }

// Namespaces lists the host namespaces that hold the objects: none if Kernel is
// set.
func (h Handler) Namespaces() []string { return namespaces(h.Kernel) }

// Owns returns an error if no Mount can have recorded e.
func (h Handler) Owns(e journal.Entry) error { return h.inner().Owns(e) }

// Look returns how to undo e.
func (h Handler) Look(ctx context.Context, p *journal.Pass, e journal.Entry) (journal.Undo, error) {
	return h.inner().Look(ctx, p, e)
}

// Find finds the mounts made by a Mount, by their sources.
func (h Handler) Find(ctx context.Context) ([]journal.Marked, error) { return h.inner().Find(ctx) }
