// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/record"
)

// backupLimit is how many files of one name are set aside.
const backupLimit = 1000

// aside is a configuration of somebody else's that is to be set aside.
type aside struct {
	from, to string // paths
	replaces bool   // an older version that was set aside before
}

func (a aside) change() string {
	return fmt.Sprintf("set aside %s as %s", a.from, filepath.Base(a.to))
}

// checkExclusive refuses what would leave a node without a configuration, or
// with one more.
func (i Install) checkExclusive() error {
	last := filepath.Ext(i.BackupSuffix)
	switch {
	case !i.Exclusive:
		return nil
	case i.Config == nil:
		return errors.New("no CNI configuration is given that could be the only one")
	case !isFileName(i.BackupSuffix) || !strings.HasPrefix(i.BackupSuffix, ".") || last == "." || slices.Contains(confSuffixes, last):
		return fmt.Errorf("backup suffix %q: needs a dot, a name, and an ending that no runtime loads (%s are loaded)",
			i.BackupSuffix, strings.Join(confSuffixes, ", "))
	}
	return nil
}

// findAsides lists what is to be set aside, in the order in which it is done:
// the last first, so that meanwhile the first file is the one that was first
// before, and then ours.
func (j *job) findAsides() error {
	if !j.Exclusive {
		return nil
	}
	names, err := j.folder().others()
	if err != nil {
		return err
	}
	for _, name := range slices.Backward(names) {
		a, err := j.asideOf(name)
		if err != nil {
			return err
		}
		j.asides = append(j.asides, a)
	}
	return nil
}

// asideOf finds the name for a backup: one that nobody has, or that of the
// backup of an older version of the same file, if it is as we left it. That
// one has had its time: without us its owner would have written over it.
func (j *job) asideOf(name string) (aside, error) {
	f := j.folder()
	for n := range backupLimit {
		a := aside{from: filepath.Join(f.dir, name), to: filepath.Join(f.dir, f.backup(name, n))}
		now, err := record.Snapshot(a.to)
		if err != nil {
			return aside{}, hint(err)
		}
		if now.Type == "" {
			return a, nil
		}
		if a.replaces = j.isBackup(a, now) && !j.covers(a); a.replaces {
			return a, nil
		}
	}
	return aside{}, fmt.Errorf("%s: there are %d backups of it already", filepath.Join(f.dir, name), backupLimit)
}

// isBackup: what is at a's backup name is what we set aside from a's place.
func (j *job) isBackup(a aside, now record.State) bool {
	if j.book == nil {
		return false
	}
	_, known := j.book.Lookup(a.from)
	e, ours := j.book.Lookup(a.to)
	return known && ours && e.Left(now)
}

// covers: what is at a's place is ours, and what was there before is at its
// backup name.
func (j *job) covers(a aside) bool {
	e, _ := j.book.Lookup(a.from)
	b, _ := j.book.Lookup(a.to)
	now, err := record.Snapshot(a.from)
	return err == nil && e.Left(now) && b.After.Same(e.Before)
}

// setAside renames one configuration, between two notes in the record.
func (j *job) setAside(a aside) error {
	if j.book == nil {
		if err := a.rename(); !errors.Is(err, fs.ErrNotExist) {
			return hint(err)
		}
		return nil
	}
	state, err := record.Snapshot(a.from)
	if err != nil || state.Type == "" { // its owner has removed it
		return hint(err)
	}
	if err := j.beginAside(a, state); err != nil {
		return hint(err)
	}
	switch err := a.rename(); {
	case errors.Is(err, fs.ErrNotExist):
		return hint(j.book.Forget(a.from))
	case err != nil:
		return hint(err)
	}
	return hint(j.book.Complete(record.Entry{Object: a.from}, record.Entry{Object: a.to, After: state}))
}

// beginAside notes that the file goes, with its content, and that its backup
// comes. If its owner has written another version since it was set aside last,
// that one is to come back.
func (j *job) beginAside(a aside, state record.State) error {
	if old, known := j.book.Lookup(a.from); known && !state.Same(old.Before) && !old.Left(state) {
		if err := j.book.Forget(a.from); err != nil {
			return err
		}
	}
	if err := j.book.BeginFile(a.from, record.State{}); err != nil {
		return err
	}
	return j.book.BeginFile(a.to, state)
}

func (a aside) rename() error {
	err := error(nil)
	if a.replaces {
		err = os.Rename(a.from, a.to)
	} else {
		err = renameNew(a.from, a.to)
	}
	if err != nil {
		return fmt.Errorf("set aside: %w", err)
	}
	return durable.SyncDir(filepath.Dir(a.to))
}

// renameChecked is for file systems that cannot look and rename at once.
func renameChecked(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(from, to)
}
