// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import "context"

// Handler undoes entries of certain kinds. Each package whose actions record
// something has one. For files that your own actions write, use [Files].
type Handler interface {
	// Kinds lists the kinds of entries that the handler knows.
	Kinds() []string

	// Namespaces names those of the host that the objects are in, by their names in
	// /proc/PID/ns: "mnt", "net", "cgroup". All other methods but Kinds and Owns are
	// called in these. None: the objects are on
	// the side of the process that has recorded them, which was on the host: they are
	// undone in its mount namespace.
	Namespaces() []string

	// Owns returns an error if no action of this kind can have recorded e. Somebody
	// else has written such an entry, and it is not undone.
	Owns(e Entry) error

	// Look looks at e's object, changes nothing, and says what there is to undo. It
	// is called for all entries that are to be undone before the first of them is
	// undone. An error that matches [ErrChanged] says that the object now belongs to
	// somebody else; one that matches [ErrKept] says that the caller wants to keep
	// it, and one that matches [ErrNeeded] what on the node needs it.
	Look(ctx context.Context, p *Pass, e Entry) (Undo, error)
}

// Undo is what there is to undo about one entry.
type Undo struct {
	// Change says in one line, in the imperative, what Run will do. If empty, there
	// is nothing to do, and Run is not called.
	Change string

	// Removes are the paths that Run removes or unmounts.
	Removes []string

	// Leaves is an error that matches [ErrChanged]: it names what belongs to
	// somebody else by now, which Run will not touch while it undoes the rest. Run
	// returns it too. Nil if Run undoes everything.
	Leaves error

	// Run makes the change. It looks again wherever something may have changed since
	// Look.
	Run func(ctx context.Context) error
}

// Pass is what a handler may know about the pass in which its entry is undone.
type Pass struct {
	journal *Journal
	gone    map[string]bool // paths that are removed earlier in the pass
	stays   map[string]bool // objects that were to be undone but could not be
	undone  map[string]bool // objects that will be as before, as far as has been looked
}

// WillRemove reports whether this pass removes or unmounts what is at path before it
// undoes the present entry.
func (p *Pass) WillRemove(path string) bool { return p.gone[path] }

// WillKeep reports whether object has an entry too that was not undone. If so, the
// reason has been reported.
func (p *Pass) WillKeep(object string) bool { return p.stays[object] }

// WillUndo reports whether object is as it was before once this pass is over, as far as it
// has looked: what comes after the present entry counts, until something is found that
// keeps it.
func (p *Pass) WillUndo(object string) bool { return p.undone[object] }

// Journal returns the journal that is being undone, for the content that it stores.
func (p *Pass) Journal() *Journal { return p.journal }
