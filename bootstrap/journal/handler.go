// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import "context"

// Handler undoes entries of certain kinds. Each package with recording actions has one.
// For files that your own actions write, use [Files].
type Handler interface {
	// Kinds lists the kinds of entries that the handler knows.
	Kinds() []string

	// Namespaces lists the host namespaces of the objects, by their names in
	// /proc/PID/ns: "mnt", "net", "cgroup". All methods except Kinds and Owns are called
	// in these. If the list is empty, the objects belong to the side of the process that
	// recorded them, which was on the host: they are undone in its mount namespace.
	Namespaces() []string

	// Owns returns an error if no action of this kind can have recorded e. Such an entry
	// was written by another program, and is not undone.
	Owns(e Entry) error

	// Look examines e's object, changes nothing, and returns how to undo it. It is called
	// for all entries to undo before the first of them is undone. An error that matches
	// [ErrChanged] means that the object now has another owner; one that matches
	// [ErrKept] means that the caller wants to keep it, and one that matches [ErrNeeded]
	// names what on the node needs it.
	Look(ctx context.Context, p *Pass, e Entry) (Undo, error)
}

// Undo is the pending change that undoes one entry.
type Undo struct {
	// Change describes in one line, in the imperative, what Run will do. If empty, there
	// is nothing to do, and Run is not called.
	Change string

	// Removes are the paths that Run removes or unmounts.
	Removes []string

	// Leaves is an error that matches [ErrChanged]: it names the parts that now have
	// another owner, which Run will not touch while it undoes the rest. Run returns it
	// too. Nil if Run undoes everything.
	Leaves error

	// Run makes the change. It examines again everything that may have changed since Look.
	Run func(ctx context.Context) error
}

// Pass informs a handler about the pass in which its entry is undone.
type Pass struct {
	journal *Journal
	gone    map[string]bool // paths that are removed earlier in the pass
	stays   map[string]bool // objects that were to be undone but could not be
	undone  map[string]bool // objects that will be as before, as far as has been looked
}

// WillRemove reports whether this pass removes or unmounts the object at path before it
// undoes the present entry.
func (p *Pass) WillRemove(path string) bool { return p.gone[path] }

// WillKeep reports whether object also has an entry and was not undone. If so, the reason
// has been reported.
func (p *Pass) WillKeep(object string) bool { return p.stays[object] }

// WillUndo reports whether object will be as it was before at the end of this pass, as
// far as is known: later entries count as undone until something is found that keeps
// them.
func (p *Pass) WillUndo(object string) bool { return p.undone[object] }

// Journal returns the journal that is being undone, for the content that it stores.
func (p *Pass) Journal() *Journal { return p.journal }
