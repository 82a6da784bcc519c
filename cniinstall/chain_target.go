// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// candidate is a configuration to chain onto.
type candidate struct {
	name   string // of the file
	origin string // its name before it was set aside, if so
}

// theirs lists the configurations that are not ours: first those that runtimes
// load, in the runtimes' order, then those that were set aside, by their original
// names. If a file with the original name exists again, its backups no longer
// count.
func (f folder) theirs(ctx context.Context) ([]candidate, error) {
	names, err := f.others(ctx)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return f.wrote(ctx, name) })
	aside, err := f.setAside(ctx)
	if err != nil {
		return nil, err
	}
	aside = slices.DeleteFunc(aside, func(c candidate) bool { return c.origin == f.own || slices.Contains(names, c.origin) })
	var all []candidate
	for _, name := range names {
		all = append(all, candidate{name, name})
	}
	return append(all, aside...), nil
}

// parse reads a configuration under the name that it had before it was set aside.
func (f folder) parse(ctx context.Context, c candidate) (*network, error) {
	raw, err := f.Read(ctx, c.name)
	if err != nil {
		return nil, err
	}
	return parse(c.origin, raw)
}

// wrote reports whether the file is ours, according to the journal. A file that was
// there before us is ours only as long as it is as we left it.
func (f folder) wrote(ctx context.Context, name string) bool {
	e, known := f.known[filepath.Join(f.Dir, name)]
	if !known || e.Before.Type == "" {
		return known
	}
	now, err := journal.Snapshot(ctx, e.Object)
	return err == nil && now.Type != "" && e.MatchesAfter(now)
}

// setAside finds the last backup of each file that has been set aside.
func (f folder) setAside(ctx context.Context) ([]candidate, error) {
	last := map[string]string{} // by file name
	names, err := f.List(ctx, func(name string) bool {
		origin, ok := f.origin(name)
		_, known := f.known[filepath.Join(f.Dir, origin)]
		return ok && !known
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(f.number(a), f.number(b)) })
	for _, name := range names {
		origin, _ := f.origin(name)
		last[origin] = name
	}
	for _, e := range f.known {
		if c, ok := f.kept(e); ok {
			last[c.origin] = c.name
		}
	}
	var all []candidate
	for _, origin := range slices.Sorted(maps.Keys(last)) {
		all = append(all, candidate{last[origin], origin})
	}
	return all, nil
}

// kept finds the backup from which e's object will be restored.
func (f folder) kept(e journal.Entry) (candidate, bool) {
	if !isConf(e) || e.Before.Type == "" || filepath.Dir(e.Object) != f.Dir {
		return candidate{}, false
	}
	for _, path := range backupsOf(e, f.known) {
		if _, err := os.Lstat(path); err == nil && f.known[path].After.Same(e.Before) {
			return candidate{filepath.Base(path), filepath.Base(e.Object)}, true
		}
	}
	return candidate{}, false
}

// number is the number of a backup, 0 for the first.
func (f folder) number(backup string) int {
	origin, _ := f.origin(backup)
	n, _ := strconv.Atoi(strings.TrimPrefix(backup, f.backup(origin, 0)+"."))
	return n
}
