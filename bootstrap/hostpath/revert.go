// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostpath

import (
	"context"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// files records the files and directories of this package.
var files = journal.Files{Kind: "hostpath"}

// Handler undoes what [Paths] and [Content] have recorded: it removes files that are still
// as they were made, or brings back the ones they replaced, and removes empty
// directories. Anything else is in use by now, and stays. Objects made in memory (on a
// tmpfs, such as /run) are gone after a reboot; one that is there again was made by
// another program, and is not removed. /run/xtables.lock is never removed, since a
// process may have it locked.
type Handler struct{}

// Kinds lists the kinds of entries of hostpath.
func (Handler) Kinds() []string { return files.Kinds() }

// Namespaces lists the mount namespace.
func (Handler) Namespaces() []string { return files.Namespaces() }

// Owns returns an error if e cannot be an entry of hostpath.
func (Handler) Owns(e journal.Entry) error { return files.Owns(e) }

// Look reports what undoing e would do.
func (Handler) Look(ctx context.Context, p *journal.Pass, e journal.Entry) (journal.Undo, error) {
	if kept(e.Object) {
		return journal.Undo{}, nil
	}
	return files.Look(ctx, p, e)
}
