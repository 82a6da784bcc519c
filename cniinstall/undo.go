// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/record"
)

// undoStep is one entry of the record to be undone, a configuration's together
// with those of its backups.
type undoStep struct {
	record.Entry
	backups []record.Entry
}

// undoSteps: configurations that were set aside, ours, plugins, directories.
// The first in the order in which runtimes sort them: the one that was first
// before is the next to be so. The others newest first.
func (i Install) undoSteps(book *record.Book) ([]undoStep, error) {
	keep, err := i.keeps()
	if err != nil {
		return nil, err
	}
	entries := book.Entries()
	slices.Reverse(entries)
	backups := map[string][]record.Entry{}
	for _, e := range entries {
		if origin := backupOf(e, entries); origin != "" {
			backups[origin] = append(backups[origin], e)
		}
	}
	var steps []undoStep
	for _, e := range entries {
		if backupOf(e, entries) == "" && !keep(e) {
			steps = append(steps, undoStep{e, backups[e.Object]})
		}
	}
	slices.SortStableFunc(steps, func(a, b undoStep) int {
		if undoRank(a.Entry) == 0 && undoRank(b.Entry) == 0 {
			return strings.Compare(a.Object, b.Object)
		}
		return undoRank(a.Entry) - undoRank(b.Entry)
	})
	return steps, nil
}

func undoRank(e record.Entry) int {
	switch {
	case isConf(e) && e.After.Type == "":
		return 0
	case isConf(e):
		return 1
	case e.Kind == record.KindDir:
		return 3
	}
	return 2
}

func isConf(e record.Entry) bool {
	return e.Kind == record.KindFile && slices.Contains(confSuffixes, filepath.Ext(e.Object))
}

// backupOf is the configuration among entries that was set aside as b; empty:
// b is no backup.
func backupOf(b record.Entry, entries []record.Entry) (origin string) {
	if b.Kind != record.KindFile || isConf(b) {
		return ""
	}
	for _, e := range entries {
		rest, ok := strings.CutPrefix(b.Object, e.Object+".")
		if ok && isConf(e) && !strings.ContainsRune(rest, filepath.Separator) && len(e.Object) > len(origin) {
			origin = e.Object
		}
	}
	return origin
}

// keeps tells which entries KeepConf lets stay.
func (i Install) keeps() (func(record.Entry) bool, error) {
	if !i.KeepConf {
		return func(record.Entry) bool { return false }, nil
	}
	f := i.folder()
	names, err := f.list(func(name string) bool { return slices.Contains(confSuffixes, filepath.Ext(name)) })
	if err != nil {
		return nil, err
	}
	needed := map[string]bool{}
	for _, name := range names {
		if n, err := f.parse(candidate{name, name}); err == nil { // another needs nothing
			for _, plugin := range n.types {
				needed[plugin] = true
			}
		}
	}
	return func(e record.Entry) bool {
		return filepath.Dir(e.Object) == i.ConfDir || e.Kind == record.KindDir || needed[filepath.Base(e.Object)]
	}, nil
}

// undo puts one entry back and forgets it; one that is somebody else's by now
// is forgotten too, and its backups stay. A configuration of ours that names
// plugins among steps is not forgotten: without them no pod would start. They
// are what is held.
func (s undoStep) undo(book *record.Book, steps []undoStep) (held []string, err error) {
	if s.Kind != record.KindFile && s.Kind != record.KindDir {
		return nil, fmt.Errorf("%s: unknown kind %q of entry, which a newer version may have made", s.Object, s.Kind)
	}
	if s.Kind == record.KindDir && holdsOnlyOurs(s.Object, book) {
		return nil, nil // it has been told why what is below it stays
	}
	err = s.putBack(book)
	if errors.Is(err, record.ErrChanged) {
		return s.leave(err, book, steps)
	}
	if err != nil {
		return nil, hint(err)
	}
	var errs []error
	gone := []string{s.Object}
	for _, b := range s.backups {
		gone = append(gone, b.Object)
		err := book.UndoFile(b)
		if err != nil && !errors.Is(err, record.ErrChanged) {
			return nil, errors.Join(append(errs, hint(err))...)
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(append(errs, book.Forget(gone...))...)
}

// leave tells of an entry that is not as it was left, and what stays with it.
func (s undoStep) leave(changed error, book *record.Book, steps []undoStep) (held []string, err error) {
	errs, gone := []error{changed}, []string{s.Object}
	for _, b := range s.backups {
		errs, gone = append(errs, stays(b.Object)), append(gone, b.Object)
	}
	if held = s.holds(steps); len(held) > 0 {
		errs = append(errs, fmt.Errorf("%s names what was installed, which stays with it until it is gone and the installation is reverted again: %s",
			s.Object, strings.Join(held, ", ")))
		return held, errors.Join(errs...)
	}
	return nil, errors.Join(append(errs, book.Forget(gone...))...)
}

// holds lists the files among steps that are plugins of s, if that is a
// configuration which we made.
func (s undoStep) holds(steps []undoStep) (paths []string) {
	if !isConf(s.Entry) || s.After.Type == "" && s.Before.Type != "" {
		return nil
	}
	name := filepath.Base(s.Object)
	n, err := folder{dir: filepath.Dir(s.Object)}.parse(candidate{name, name})
	if err != nil {
		return nil // gone, or nothing that a pod could start with
	}
	for _, p := range steps {
		if p.Kind == record.KindFile && !isConf(p.Entry) && slices.Contains(n.types, filepath.Base(p.Object)) {
			paths = append(paths, p.Object)
		}
	}
	return paths
}

// holdsOnlyOurs: there is something in dir, and all of it is in the record.
func holdsOnlyOurs(dir string, book *record.Book) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0 && !slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		_, ours := book.Lookup(filepath.Join(dir, e.Name()))
		return !ours
	})
}

// stays tells of a backup whose place is taken.
func stays(backup string) error {
	if _, err := os.Lstat(backup); err != nil {
		return nil
	}
	return fmt.Errorf("%s, which was set aside, stays beside it", backup)
}

// putBack restores the entry's object: a configuration that was set aside by
// renaming its backup, so that it is the same file again; if that is gone or
// was edited, from the content in the record.
func (s undoStep) putBack(book *record.Book) error {
	if outlived, err := s.Outlived(); err != nil || outlived || len(s.backups) == 0 {
		return book.UndoFile(s.Entry)
	}
	now, err := record.Snapshot(s.Object)
	if err != nil {
		return err
	}
	if now.Type != "" || !s.Left(now) {
		return book.UndoFile(s.Entry)
	}
	for _, b := range s.backups {
		kept, err := record.Snapshot(b.Object)
		if err != nil {
			return err
		}
		if kept.Type == "" || !kept.Same(s.Before) {
			continue
		}
		if err := renameNew(b.Object, s.Object); err != nil {
			return fmt.Errorf("put back: %w", err)
		}
		return durable.SyncDir(filepath.Dir(s.Object))
	}
	return book.UndoFile(s.Entry)
}

// would is what undo would do, one line each, and what it would hold; going are
// the paths that will be gone by then, to which it adds.
func (s undoStep) would(going map[string]bool, steps []undoStep) (changes, held []string, err error) {
	change, left, err := wouldUndo(s.Entry, going)
	if err != nil {
		return nil, nil, err
	}
	if !left {
		return nil, s.holds(steps), nil
	}
	changes = slices.DeleteFunc([]string{change}, func(c string) bool { return c == "" })
	renamed := change == "" || s.Before.Type == ""
	for _, b := range s.backups {
		change, _, err := wouldUndo(b, going)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case change == "":
		case !renamed && b.After.Same(s.Before):
			renamed = true
		default:
			changes = append(changes, change)
		}
	}
	return changes, nil, nil
}

// wouldUndo is what undoing e alone would do (empty: nothing), and whether e's
// object is still as it was left, or as it was before.
func wouldUndo(e record.Entry, going map[string]bool) (change string, left bool, err error) {
	outlived, err := e.Outlived()
	if err != nil || outlived {
		return "", true, err
	}
	now, err := record.Snapshot(e.Object)
	switch {
	case err != nil:
		return "", false, err
	case now.Same(e.Before):
		return "", true, nil
	case !e.Left(now):
		return "", false, nil
	case e.Before.Type != "":
		return "restore " + e.Object, true, nil
	case e.Kind == record.KindDir:
		if empty, err := emptyBut(e.Object, going); err != nil || !empty {
			return "", true, err
		}
	}
	going[e.Object] = true
	if e.Kind == record.KindDir {
		return "remove directory " + e.Object, true, nil
	}
	return "remove " + e.Object, true, nil
}

// emptyBut reports whether dir holds nothing but what is going.
func emptyBut(dir string, going map[string]bool) (bool, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !going[filepath.Join(dir, e.Name())] }), nil
}
