// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/durable"
)

// Handler undoes the recorded changes of every [Writer].
//
// It removes the configuration that Apply wrote, and the directories that Apply
// made if they are otherwise empty. Objects that Apply replaced do not come back:
// an earlier configuration, and a file that was in the place of a key's link. An
// earlier configuration that Apply was killed before replacing stays.
//
// A configuration that is no longer the one that Apply wrote is not touched, but
// reported, and remains recorded as kept; the same applies to a file that has
// replaced a key's link since. A configuration that Apply wrote to a file system in
// memory (tmpfs) is gone after a reboot: one that exists there now belongs to
// another writer, and is not touched. If undoing is killed at any point, it can be
// repeated.
type Handler struct {
	step func(string) // called with a description before each change; may be nil
}

// Kinds lists the kinds of entries of a configuration.
func (Handler) Kinds() []string { return []string{kindDir, kindLayout} }

// Namespaces returns none: the directory is on this side.
func (Handler) Namespaces() []string { return nil }

// Owns returns an error if e's object cannot be part of a configuration.
func (Handler) Owns(e journal.Entry) error {
	if e.Kind == kindLayout && filepath.Base(e.Object) != dataLink {
		return fmt.Errorf("%q is not the link %s", e.Object, dataLink)
	}
	return files.Owns(e)
}

// Look returns how to undo e.
func (h Handler) Look(ctx context.Context, p *journal.Pass, e journal.Entry) (journal.Undo, error) {
	if e.Kind != kindLayout {
		return files.Look(ctx, p, e)
	}
	d, err := openLayout(e)
	if err != nil || d == nil {
		return journal.Undo{}, revertHint(e, err)
	}
	defer d.Close()
	r, err := removalOf(ctx, d, e)
	if err != nil {
		return journal.Undo{}, revertHint(e, err)
	}
	u := journal.Undo{Leaves: revertHint(e, r.taken)}
	if len(r.links)+len(r.litter) > 0 {
		u.Change, u.Removes = r.change(), r.paths()
		u.Run = func(ctx context.Context) error { return revertHint(e, h.undo(ctx, e)) }
	}
	return u, nil
}

// openLayout opens the directory of e, and returns nil if it is gone.
func openLayout(e journal.Entry) (*durable.Dir, error) {
	d, err := durable.OpenDir(filepath.Dir(e.Object))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	return d, err
}

func (h Handler) undo(ctx context.Context, e journal.Entry) (err error) {
	d, err := openLayout(e)
	if err != nil || d == nil {
		return err
	}
	defer d.Close()
	unlock, err := lock(ctx, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	r, err := removalOf(ctx, d, e)
	if err != nil {
		return err
	}
	r.litter = withoutLock(r.litter)
	step := h.step
	if step == nil {
		step = func(string) {}
	}
	return r.run(step)
}

// removal removes a configuration, or a killed run's leftovers of one.
type removal struct {
	dir    *durable.Dir
	links  []string // of the keys, and then ..data
	litter []string // data directories and other leftovers
	taken  error    // places of links that have another owner by now
}

// removalOf finds the parts to remove of e's layout. The error is ErrChanged if
// ..data shows a configuration that the step has not written.
func removalOf(ctx context.Context, d *durable.Dir, e journal.Entry) (removal, error) {
	l, err := inspect(ctx, d, nil)
	if err != nil {
		return removal{}, err
	}
	r := removal{dir: d, litter: l.litter}
	shows := l.shows()
	if shows != "" && shows == e.Before.File {
		return r, nil // the earlier configuration was not replaced
	}
	if l.data != "" {
		left, err := l.leftBy(ctx, d, e)
		if err == nil && !left {
			err = fmt.Errorf("it is %w, so it is kept", journal.ErrChanged)
		}
		if err != nil {
			return removal{}, err
		}
		r.litter = append(r.litter, l.data)
	}
	r.links = l.remove
	if e.Done {
		r.taken = l.taken(d)
	}
	if strings.HasPrefix(l.linkOf[dataLink], "..") {
		r.links = append(r.links, dataLink)
	}
	return r, nil
}

// taken returns an error for each key with another object in the place of its link.
func (l *layout) taken(d *durable.Dir) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(l.held)) {
		if _, there := l.all[key]; there && !l.leadsToKey(key) {
			errs = append(errs, fmt.Errorf("%s is %w, so it is kept", d.Path(key), journal.ErrChanged))
		}
	}
	return errors.Join(errs...)
}

// change describes in one line what run does.
func (r removal) change() string {
	if len(r.links) == 0 {
		return "remove leftovers of a killed run in " + r.dir.Path()
	}
	return "remove configuration from " + r.dir.Path()
}

func (r removal) paths() (paths []string) {
	for _, name := range slices.Concat(r.links, r.litter) {
		paths = append(paths, r.dir.Path(name))
	}
	return paths
}

// run removes links before what they lead to.
func (r removal) run(step func(string)) error {
	w := writer{dir: r.dir.Unsynced(), step: step}
	if err := w.removeLinks(r.links); err != nil {
		return err
	}
	return errors.Join(r.taken, w.removeLitter(r.litter), w.dir.Sync())
}

func revertHint(e journal.Entry, err error) error {
	if err == nil {
		return nil
	}
	return remedy(fmt.Errorf("revert configuration in %s: %w", filepath.Dir(e.Object), err))
}
