// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/slipway-dev/slipway/cleanup/internal/filetree"
	"github.com/slipway-dev/slipway/cleanup/internal/rtnl"
	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// removal is one call of Remove: the state that objects pass to those removed after them.
type removal struct {
	*node
	slowLinks  map[int]bool              // that take long to delete
	rules      lazy[*rtnl.Rules]         // before one was removed, without those removed since
	unrestored map[filetree.Inode]string // by directory, a file set aside that did not get its name back
}

// remover removes items, and calls done for each that it came to before ctx was
// done, with why it is still there.
type remover func(ctx context.Context, r *removal, items []Item, done doneFunc)

type doneFunc func(item Item, err error)

// errUnlisted is the error of an item that the caller has made, or whose kind the caller
// has changed.
var errUnlisted = errors.New("it was not listed by an inventory")

// single is an object that is removed by itself.
type single interface {
	// remove removes the object, and no other that took its name or number since it was
	// listed. Removing an object that is gone succeeds.
	remove(context.Context, *removal) error
}

// singly removes items one after the other.
func singly(ctx context.Context, r *removal, items []Item, done doneFunc) {
	for _, item := range items {
		if ctx.Err() != nil {
			return
		}
		err := errUnlisted
		if object, ok := item.object.(single); ok {
			err = object.remove(ctx, r)
		}
		done(item, err)
	}
}

// together makes a remover of a function that removes many objects of one type, and reports
// the result for an object by its index.
func together[T any](remove func(ctx context.Context, r *removal, objects []T, done func(i int, err error))) remover {
	return func(ctx context.Context, r *removal, items []Item, done doneFunc) {
		var objects []T
		var listed []Item
		for _, item := range items {
			if object, ok := item.object.(T); ok {
				objects, listed = append(objects, object), append(listed, item)
			} else {
				done(item, errUnlisted)
			}
		}
		remove(ctx, r, objects, func(i int, err error) { done(listed[i], err) })
	}
}

func (l Leftovers) remove(ctx context.Context, own *owned, items []Item) error {
	n, err := newNode(ctx, l, own)
	if err != nil {
		return err
	}
	defer n.close()
	r := &removal{node: n, slowLinks: slowLinks(items), unrestored: map[filetree.Inode]string{}}
	t := &tally{progress: l.Progress, total: len(items)}
	steps, unlisted := plan(items)
	for _, item := range unlisted {
		t.done(item, errUnlisted)
	}
	for _, step := range steps {
		if ctx.Err() != nil {
			break
		}
		t.at = step.items[0].String()
		step.remove(ctx, r, step.items, t.done)
	}
	return t.err(ctx)
}

// tally counts the results of the items so far.
type tally struct {
	progress func(done, total int, item string, err error)
	total    int
	dealt    int
	at       string // the first item of those removed last
	errs     []error
}

func (t *tally) done(item Item, err error) {
	t.dealt++
	if err != nil {
		err = fmt.Errorf("%s %s: %w", item.verb(), item, hint(item.Kind, err))
		t.errs = append(t.errs, err)
	}
	if t.progress != nil {
		t.progress(t.dealt, t.total, item.String(), err)
	}
}

func (t *tally) err(ctx context.Context) error {
	if rest := t.total - t.dealt; rest > 0 {
		t.errs = append(t.errs, fmt.Errorf("stopped with %d of %d items left, at %s: %w", rest, t.total, t.at, failure.Ended(ctx)))
	}
	if len(t.errs) == 0 {
		return nil
	}
	return fmt.Errorf("cleanup: %w", errors.Join(t.errs...))
}

// step is items that one finder removes together.
type step struct {
	remove remover
	items  []Item
}

// attached is implemented by objects that go when their link goes.
type attached interface{ onLink() int }

// plan sorts items into steps. Objects attached to a link to be removed come after the
// links: they disappear with them, and are removed by themselves only if a link could not
// be removed.
func plan(items []Item) (steps []step, unlisted []Item) {
	type place struct {
		kind     string
		attached bool
	}
	at := map[place]int{}
	add := func(f finder, attached bool) {
		for _, kind := range f.kinds {
			at[place{kind, attached}] = len(steps)
			steps = append(steps, step{remove: f.remove})
		}
	}
	for _, f := range finders() {
		add(f, false)
		for _, hung := range finders() {
			if f.name == "links" {
				add(hung, true)
			}
		}
	}
	going := map[int]bool{}
	for _, item := range items {
		if l, ok := item.object.(linkObject); ok {
			going[l.Index] = true
		}
	}
	for _, item := range items {
		hung, ok := item.object.(attached)
		i, known := at[place{item.Kind, ok && going[hung.onLink()]}]
		if !known || item.object == nil {
			unlisted = append(unlisted, item)
			continue
		}
		steps[i].items = append(steps[i].items, item)
	}
	return slices.DeleteFunc(steps, func(s step) bool { return len(s.items) == 0 }), unlisted
}

// slowLinks returns the links with programs on tcx among the items.
func slowLinks(items []Item) map[int]bool {
	out := map[int]bool{}
	for _, item := range items {
		if at, ok := item.object.(hookObject); ok {
			out[at.link] = true
		}
	}
	return out
}

// hint adds the missing capability to an error, unless the error already names it.
func hint(kind string, err error) error {
	if needs := kinds[kind]; len(needs) > 0 {
		return remedy.Capabilities(err, "", needs...)
	}
	return remedy.File(err)
}
