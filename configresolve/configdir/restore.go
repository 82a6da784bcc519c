// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/durable"
)

// restoration restores the layout that a directory had.
type restoration struct {
	dir   *durable.Dir
	now   *layout // its remove and litter are what goes
	was   prior
	shown bool              // ..data shows what it did
	links map[string]string // links of keys to make
	taken []error           // places of links that are somebody else's by now
}

// compareLayout looks at the layout that e is about. The error is ErrChanged if
// that layout is neither as the step left it nor as it was before.
func compareLayout(ctx context.Context, j *journal.Journal, e journal.Entry, d *durable.Dir) (*restoration, error) {
	was, err := kept(j, e.Before)
	if err != nil {
		return nil, err
	}
	r := &restoration{dir: d, was: was}
	if r.now, err = inspect(ctx, d, nil); err != nil {
		return nil, err
	}
	if r.shown, err = was.shown(ctx, d, r.now); err != nil {
		return nil, err
	}
	left, err := r.now.leftBy(ctx, d, e)
	if err != nil {
		return nil, err
	}
	broken := r.now.data == "" && r.hides() // what ..data shows is gone
	if !r.shown && !left && !broken {
		return nil, fmt.Errorf("it is %w, so it is kept", journal.ErrChanged)
	}
	own, err := keysOf(j, e)
	if err != nil {
		return nil, err
	}
	r.compareLinks(own)
	return r, nil
}

// keysOf names the keys whose places have entries of their own, which restore them.
func keysOf(j *journal.Journal, e journal.Entry) (map[string]bool, error) {
	all, err := j.Entries()
	keys := map[string]bool{}
	for _, o := range all {
		if o.Kind == kindKey && o.Step == e.Step && filepath.Dir(o.Object) == filepath.Dir(e.Object) {
			keys[filepath.Base(o.Object)] = true
		}
	}
	return keys, err
}

// compareLinks finds the links to make, without those of the keys in own.
func (r *restoration) compareLinks(own map[string]bool) {
	r.links = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(r.was.Links)) {
		target := r.now.linkOf[name]
		_, there := r.now.all[name]
		switch {
		case own[name] || target == r.was.Links[name]:
		case !there || strings.HasPrefix(target, dataLink+"/"):
			r.links[name] = r.was.Links[name]
		default:
			r.taken = append(r.taken, fmt.Errorf("%s is %w, so it is kept", r.dir.Path(name), journal.ErrChanged))
		}
	}
	r.now.remove = slices.DeleteFunc(r.now.remove, func(name string) bool {
		_, stays := r.was.Links[name]
		return stays || own[name]
	})
}

func (r *restoration) done() bool {
	return r.shown && len(r.links)+len(r.now.remove)+len(r.now.litter) == 0
}

// change says in one line what run does.
func (r *restoration) change() string {
	if r.was.empty() {
		return "remove configuration from " + r.dir.Path()
	}
	return "restore the earlier configuration in " + r.dir.Path()
}

// goes lists the paths that will be gone afterwards.
func (r *restoration) goes() (paths []string) {
	names := slices.Concat(r.now.remove, r.now.litter)
	if r.now.data != "" && !r.shown {
		names = append(names, r.now.data)
	}
	if r.hides() {
		names = append(names, dataLink)
	}
	for _, name := range names {
		paths = append(paths, r.dir.Path(name))
	}
	return paths
}

// hides reports whether ..data is removed, because there was none before.
func (r *restoration) hides() bool {
	return r.was.Data == nil && strings.HasPrefix(r.now.linkOf[dataLink], "..")
}

// run follows the order of [writer.write]: no link of a key leads nowhere, except
// those that did before.
func (r *restoration) run(ctx context.Context, step func(string)) error {
	if r.done() {
		return errors.Join(r.taken...)
	}
	w := writer{dir: r.dir.Unsynced(), want: r.was.values(), was: &r.was, step: step}
	fresh := ""
	if !r.shown && r.was.Dir != nil {
		name, err := w.newData(ctx)
		if err == nil {
			fresh, err = r.rename(w, name)
		}
		if err != nil {
			return err
		}
	}
	if err := w.removeLinks(r.now.remove); err != nil {
		return err
	}
	if !r.shown {
		if err := r.show(w, fresh); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.links)) {
		if err := w.link(r.links[name], name); err != nil {
			return err
		}
	}
	return errors.Join(append(r.taken, w.removeLitter(r.now.litter), w.dir.Sync())...)
}

// rename gives a data directory that ..data does not show yet the name of the
// earlier one, if that name is free. What a killed Revert has left there is removed
// first.
func (r *restoration) rename(w writer, fresh string) (string, error) {
	name := r.was.Data.Target
	if !leftover.MatchString(name) || name == r.now.data {
		return fresh, nil
	}
	if err := w.removeData(name); err != nil {
		return "", err
	}
	r.now.litter = slices.DeleteFunc(r.now.litter, func(n string) bool { return n == name })
	w.step("rename " + fresh + " to " + name)
	return name, w.dir.RenameNew(fresh, name)
}

// show swaps ..data, and adds the data directory that it showed to the leftovers.
func (r *restoration) show(w writer, fresh string) (err error) {
	switch {
	case fresh != "":
		err = errors.Join(w.dir.Sync(), w.link(fresh, dataLink), w.dir.Sync())
	case r.hides():
		err = w.removeLinks([]string{dataLink})
	case r.was.Data == nil:
	case r.was.Data.isLink():
		err = w.link(r.was.Data.Target, dataLink)
	default:
		err = w.file(dataLink, *r.was.Data)
	}
	if r.now.data != "" {
		r.now.litter = append(r.now.litter, r.now.data)
	}
	return err
}
