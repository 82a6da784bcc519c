// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway/internal/record"
)

// candidate is a configuration to chain onto.
type candidate struct {
	name   string // of the file
	origin string // its name before it was set aside, if it was
}

// theirs lists what is not ours: first what runtimes load, in their order, then
// what was set aside, in the order of the names it had. What is in its place
// again makes its backups old.
func (f folder) theirs() ([]candidate, error) {
	names, err := f.others()
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, f.wrote)
	aside, err := f.setAside()
	if err != nil {
		return nil, err
	}
	aside = slices.DeleteFunc(aside, func(c candidate) bool { return c.origin == f.own || slices.Contains(names, c.origin) })
	slices.SortFunc(aside, func(a, b candidate) int { return strings.Compare(a.origin, b.origin) })
	var all []candidate
	for _, name := range names {
		all = append(all, candidate{name, name})
	}
	return append(all, aside...), nil
}

// parse reads a configuration as what it was before it was set aside.
func (f folder) parse(c candidate) (*network, error) {
	raw, err := f.read(c.name)
	if err != nil {
		return nil, err
	}
	return parse(c.origin, raw)
}

// wrote: the record says that the file is ours. One that was there before us
// is only as long as it is as we left it.
func (f folder) wrote(name string) bool {
	e, known := f.lookup(name)
	if !known || e.Before.Type == "" {
		return known
	}
	now, err := record.Snapshot(e.Object)
	return err == nil && now.Type != "" && e.Left(now)
}

// lookup finds what the record says of a file, unless a reboot has taken that
// file away.
func (f folder) lookup(name string) (record.Entry, bool) {
	if f.book == nil {
		return record.Entry{}, false
	}
	e, known := f.book.Lookup(filepath.Join(f.dir, name))
	outlived, err := e.Outlived()
	return e, known && err == nil && !outlived
}

// setAside finds the last backup of each file that has been set aside.
func (f folder) setAside() ([]candidate, error) {
	last := map[string]string{} // by the name of the file
	names, err := f.list(func(name string) bool {
		origin, ok := f.origin(name)
		_, known := f.lookup(origin)
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
	for _, c := range f.recorded() {
		last[c.origin] = c.name
	}
	var all []candidate
	for origin, name := range last {
		all = append(all, candidate{name, origin})
	}
	return all, nil
}

// recorded lists the backups that hold what the record would put back, oldest
// first: not ours under an earlier name, nor an older version.
func (f folder) recorded() (backups []candidate) {
	if f.book == nil {
		return nil
	}
	entries := f.book.Entries()
	for _, b := range entries {
		origin := backupOf(b, entries)
		if origin == "" || filepath.Dir(origin) != f.dir {
			continue
		}
		e, known := f.lookup(filepath.Base(origin))
		if !known || e.Before.Type == "" || !b.After.Same(e.Before) {
			continue
		}
		if _, err := os.Lstat(b.Object); err == nil {
			backups = append(backups, candidate{filepath.Base(b.Object), filepath.Base(origin)})
		}
	}
	return backups
}

// number is that of a backup, 0 for the first.
func (f folder) number(backup string) int {
	origin, _ := f.origin(backup)
	n, _ := strconv.Atoi(strings.TrimPrefix(backup, f.backup(origin, 0)+"."))
	return n
}
