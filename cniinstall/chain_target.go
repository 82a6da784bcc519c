// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"
)

// candidate is a configuration to chain onto.
type candidate struct {
	name     string // of the file, before it was set aside
	file     string // of the file that has it now; empty: none has that is known
	byOthers bool   // other agents have set it aside
	read     func(ctx context.Context) ([]byte, error)
}

// theirs lists the configurations that are not ours: first those that runtimes
// load, in the runtimes' order, then those that were set aside, by their original
// names. If a file with the original name exists again, its backups no longer
// count.
func (f directory) theirs(ctx context.Context) (all []candidate, err error) {
	names, err := f.others(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		ours, err := f.wrote(ctx, name)
		if err != nil {
			return nil, err
		}
		if !ours {
			all = append(all, candidate{name: name, file: name, read: f.reads(name)})
		}
	}
	aside, err := f.setAside(ctx)
	aside = slices.DeleteFunc(aside, func(c candidate) bool {
		return f.isOwn(c.name) || slices.ContainsFunc(all, func(o candidate) bool { return o.name == c.name })
	})
	return append(all, aside...), err
}

func (f directory) reads(name string) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) { return f.Read(ctx, name) }
}

// wrote reports whether the file is ours, according to the ledger. A file that was
// there before us is ours only as long as it is as we left it.
func (f directory) wrote(ctx context.Context, name string) (bool, error) {
	o, _, known := f.files.at(filepath.Join(f.Dir, name))
	switch {
	case !known:
		return false, nil
	case o.Original.IsZero():
		return true, nil
	case o.Left.IsZero(): // it was set aside, and written again
		return false, nil
	}
	return isAsLeft(ctx, o)
}

// setAside finds each file that has been set aside: it is the backup, or the ledger has its
// content; without a record, it is the last backup.
func (f directory) setAside(ctx context.Context) (all []candidate, err error) {
	last := map[string]candidate{} // by name
	names, err := f.List(ctx, func(name string) bool {
		origin, ok := f.origin(name)
		_, _, known := f.files.at(filepath.Join(f.Dir, origin))
		return ok && !known
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(len(a), len(b)) }) // by their numbers
	for _, name := range names {
		origin, _ := f.origin(name)
		last[origin] = candidate{name: origin, read: f.reads(name)}
	}
	for _, o := range f.files.replaced(f.Dir) {
		_, mine := f.files.wants(o)
		c := candidate{name: filepath.Base(o.Object), byOthers: !mine, read: func(ctx context.Context) ([]byte, error) { return contentOf(ctx, o.Object, o.Original) }}
		if c.file, _ = twinOf(ctx, o.Object, o.Original); c.file != "" { // with the plugins that are in it in place
			c.read = f.reads(c.file)
		}
		last[c.name] = c
	}
	for _, origin := range slices.Sorted(maps.Keys(last)) {
		all = append(all, last[origin])
	}
	return all, nil
}
