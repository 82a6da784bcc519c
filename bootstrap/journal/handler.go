// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import "context"

// Handler undoes entries of some kinds. Each package whose actions record
// something has one; [Files] serves for files of your own.
type Handler interface {
	// Kinds lists the kinds of entries that the handler knows.
	Kinds() []string

	// Owns is an error if e is nothing that an action of this kind can have
	// recorded: somebody else has written it, and it is not obeyed.
	Owns(e Entry) error

	// Look looks at e's object, changes nothing, and says what there is to undo.
	// All entries that are to be undone are looked at before the first is. An
	// error that matches [ErrChanged] says that the object is somebody else's by
	// now, and one that matches [ErrKept] that it is to stay.
	Look(ctx context.Context, p *Pass, e Entry) (Undo, error)
}

// Undo is what there is to undo about one entry.
type Undo struct {
	// Change says in one line, in the imperative, what Run will do. Empty: there
	// is nothing to do, and Run is not called.
	Change string

	// Removes are the paths that Run removes or unmounts.
	Removes []string

	// Leaves is what Run will leave to somebody else, and return, while it undoes
	// the rest: an error that matches [ErrChanged]. Nil: nothing.
	Leaves error

	// Run does it. It looks again where something may have changed since.
	Run func(ctx context.Context) error
}

// Pass is what a handler may know of the pass that its entry is undone in.
type Pass struct {
	journal *Journal
	gone    map[string]bool // paths that are removed before
	stays   map[string]bool // objects that were to be undone, and are not
}

// Goes reports whether what is at path is removed or unmounted before the entry
// at hand is undone.
func (p *Pass) Goes(path string) bool { return p.gone[path] }

// Stays reports whether object is recorded too and was not undone: that has
// been reported.
func (p *Pass) Stays(object string) bool { return p.stays[object] }

// Journal is the journal being undone, for content that it keeps.
func (p *Pass) Journal() *Journal { return p.journal }

// In returns a handler that looks and undoes through run: in the namespaces that
// its objects are in. It is for hostns.Do:
//
//	onHost := func(ctx context.Context, f func(context.Context) error) error {
//		return hostns.Do(ctx, "/hostproc/1", hostns.Mount, f)
//	}
//	handlers = append(handlers, journal.In(onHost, bpffs.Handler{}))
func In(run func(context.Context, func(context.Context) error) error, h Handler) Handler {
	return elsewhere{h, run}
}

type elsewhere struct {
	Handler
	run func(context.Context, func(context.Context) error) error
}

func (h elsewhere) Look(ctx context.Context, p *Pass, e Entry) (u Undo, err error) {
	err = h.run(ctx, func(ctx context.Context) (err error) {
		u, err = h.Handler.Look(ctx, p, e)
		return err
	})
	if inside := u.Run; inside != nil {
		u.Run = func(ctx context.Context) error { return h.run(ctx, inside) }
	}
	return u, err
}
