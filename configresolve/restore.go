// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/record"
)

// restoration is what brings a directory back to the layout that it had.
type restoration struct {
	root  *os.Root
	now   *layout // its remove and litter are what goes
	was   prior
	shown bool              // ..data shows what it did
	links map[string]string // links of keys to make
	taken []error           // places of links that are somebody else's by now
}

// compareLayout looks at what e is about. It is ErrChanged where that is not as
// it was left, nor as it was before.
func (w Write) compareLayout(ctx context.Context, book *record.Book, e record.Entry, root *os.Root) (*restoration, error) {
	was, err := kept(e.Before, w.StateDir)
	if err != nil {
		return nil, err
	}
	l, err := inspect(ctx, root, nil)
	if err != nil {
		return nil, err
	}
	now, err := capture(root, l)
	if err != nil {
		return nil, err
	}
	r := &restoration{root: root, now: l, was: was, shown: was.shows(now)}
	broken := l.data == "" && r.hides() // what ..data shows is gone
	if left := l.data != "" && e.Left(layoutState(l.content)); !r.shown && !left && !broken {
		return nil, fmt.Errorf("it is %w, and stays", record.ErrChanged)
	}
	return r, r.compareLinks(func(name string) bool {
		_, noted := book.Lookup(filepath.Join(root.Name(), name))
		return noted // put back by its own entry
	})
}

func (r *restoration) compareLinks(noted func(name string) bool) error {
	r.links = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(r.was.Links)) {
		target, isLink := r.now.linkOf[name]
		if noted(name) || target == r.was.Links[name] {
			continue
		}
		_, err := r.root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist) || isLink && strings.HasPrefix(target, dataLink+"/"):
			r.links[name] = r.was.Links[name]
		case err != nil:
			return err
		default:
			r.taken = append(r.taken, fmt.Errorf("%s is %w, and stays", filepath.Join(r.root.Name(), name), record.ErrChanged))
		}
	}
	r.now.remove = slices.DeleteFunc(r.now.remove, func(name string) bool {
		_, stays := r.was.Links[name]
		return stays || noted(name)
	})
	return nil
}

func (r *restoration) done() bool {
	return r.shown && len(r.links)+len(r.now.remove)+len(r.now.litter) == 0
}

// goes lists what the directory no longer holds afterwards.
func (r *restoration) goes() []string {
	names := slices.Concat(r.now.remove, r.now.litter)
	if r.now.data != "" && !r.shown {
		names = append(names, r.now.data)
	}
	if r.hides() {
		names = append(names, dataLink)
	}
	return names
}

// hides reports whether ..data goes, of which there was none.
func (r *restoration) hides() bool {
	return r.was.Data.Type == "" && strings.HasPrefix(r.now.linkOf[dataLink], "..")
}

// run goes in the order of [writer.write]: no link of a key leads nowhere but
// those that did before.
func (r *restoration) run(ctx context.Context, step func(string)) error {
	if r.done() {
		return errors.Join(r.taken...)
	}
	w := writer{root: r.root, want: r.was.values(), was: &r.was, step: step}
	fresh := ""
	if !r.shown && r.was.Dir.Type != "" {
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
	return errors.Join(append(r.taken, w.removeLitter(r.now.litter), w.sync("."))...)
}

// rename gives a data directory, which nothing shows yet, the name that the
// earlier one had, if it is free. What a killed Revert left there goes first.
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
	return name, r.root.Rename(fresh, name)
}

// show swaps ..data, and leaves what it showed as litter.
func (r *restoration) show(w writer, fresh string) (err error) {
	switch {
	case fresh != "":
		err = errors.Join(w.sync("."), w.link(fresh, dataLink), w.sync("."))
	case r.hides():
		err = w.removeLinks([]string{dataLink})
	case r.was.Data.Type == "symlink":
		err = w.link(r.was.Data.Target, dataLink)
	case r.was.Data.Type == "file":
		err = w.file(dataLink, r.was.Data)
	}
	if r.now.data != "" {
		r.now.litter = append(r.now.litter, r.now.data)
	}
	return err
}
