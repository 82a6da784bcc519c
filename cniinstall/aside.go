// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/input"
)

// backupLimit is the maximum number of backups of the same name.
const backupLimit = 1000

// The limits of what is set aside in one folder, including earlier files: all of it
// is in the journal, which each later run reads. A node has a handful of
// configurations, of about a kilobyte each; runtimes load one of them, or a few.
const (
	maxAsides     = 100
	maxAsideBytes = 4 << 20
)

// aside is a configuration to set aside. If it is ours, under an earlier name, it
// is removed instead.
type aside struct {
	from, to string // paths; no to: it is removed
	replaces bool   // an older version set aside before
	size     int64
}

func (a aside) change() string {
	if a.to == "" {
		return "remove " + a.from
	}
	return fmt.Sprintf("set aside %s as %s", a.from, filepath.Base(a.to))
}

// checkExclusive rejects an Install that would leave a node without a
// configuration, or with one too many.
func (i Install) checkExclusive() error {
	last := filepath.Ext(i.BackupSuffix)
	switch {
	case !i.Exclusive:
		return nil
	case i.Config == nil:
		return errors.New("no CNI configuration given to be the only one")
	case !isFileName(i.BackupSuffix) || !strings.HasPrefix(i.BackupSuffix, ".") || last == "." || slices.Contains(confSuffixes, last):
		return fmt.Errorf("backup suffix %q: needs a dot, a name, and an ending that no runtime loads (%s are loaded)",
			i.BackupSuffix, strings.Join(confSuffixes, ", "))
	}
	return nil
}

// findAsides lists the files to set aside, last name first: the folder's first file
// stays first until it is set aside, and then ours is first.
func (j *job) findAsides(ctx context.Context) error {
	if !j.Exclusive || j.confDir() == nil {
		return nil
	}
	names, err := j.folder().others(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Backward(names) {
		if err := ctx.Err(); err != nil {
			return err
		}
		a, err := j.asideOf(ctx, name)
		if err != nil {
			return hint(err)
		}
		j.asides = append(j.asides, a)
	}
	return j.boundAsides()
}

// boundAsides returns an error if the limits of what is set aside would be
// exceeded.
func (j *job) boundAsides() error {
	files, bytes, coming := 0, int64(0), map[string]bool{}
	for _, a := range j.asides {
		if a.to != "" {
			files, bytes, coming[a.from] = files+1, bytes+a.size, true
		}
	}
	if files == 0 {
		return nil
	}
	for path, e := range j.known {
		if isAside(e) && filepath.Dir(path) == j.ConfDir && !coming[path] {
			files, bytes = files+1, bytes+e.Before.Size
		}
	}
	if files <= maxAsides && bytes <= maxAsideBytes {
		return nil
	}
	return fmt.Errorf("%s has %d other configurations to set aside, or set aside before, of %d bytes in total; the limits are %d files and %d bytes: remove those that no CNI needs, or do not install ours as the only one",
		j.ConfDir, files, bytes, maxAsides, maxAsideBytes)
}

// asideOf finds the name for a backup: an unused one, or that of an older version's
// backup, if it is as we left it. The older backup is no longer needed: without us,
// its owner would have overwritten that version.
func (j *job) asideOf(ctx context.Context, name string) (aside, error) {
	f := j.folder()
	a := aside{from: filepath.Join(f.Dir, name)}
	if ours, err := j.isAsLeft(ctx, a.from); err != nil || ours && isOurs(j.known[a.from]) {
		return a, err
	}
	if ours, err := j.isCopyOfOurs(ctx, name); err != nil || ours {
		return a, err
	}
	if info, err := j.confDir().Lstat(name); err == nil && info.Mode().IsRegular() {
		if a.size = info.Size(); a.size > input.MaxNetwork {
			return aside{}, fmt.Errorf("%w, so it is no CNI configuration: move it away", input.TooLarge(a.from, input.MaxNetwork))
		}
	}
	for n := range backupLimit {
		a.to = filepath.Join(f.Dir, f.backup(name, n))
		if _, err := j.confDir().Lstat(filepath.Base(a.to)); errors.Is(err, fs.ErrNotExist) {
			return a, nil
		} else if err != nil {
			return aside{}, err
		}
		var err error
		if a.replaces, err = j.isAsLeft(ctx, a.to); err != nil || a.replaces {
			return a, err
		}
	}
	return aside{}, fmt.Errorf("%s: it has %d backups already", a.from, backupLimit)
}

// isCopyOfOurs reports whether the file has the content of a configuration that we
// installed, because it was moved or copied there. As a backup it would replace
// that of the original file of this name.
func (j *job) isCopyOfOurs(ctx context.Context, name string) (bool, error) {
	info, err := j.confDir().Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return false, nil // setting it aside reveals what it is instead
	}
	for _, e := range j.known {
		if !isConf(e) || !isOurs(e) || e.After.Size != info.Size() {
			continue
		}
		now, err := journal.Snapshot(ctx, filepath.Join(j.ConfDir, name))
		if err != nil || now.SHA256 == e.After.SHA256 {
			return err == nil, err
		}
	}
	return false, nil
}

// isAsLeft reports whether the object at path is recorded, and as we left it.
func (j *job) isAsLeft(ctx context.Context, path string) (bool, error) {
	e, known := j.known[path]
	if !known {
		return false, nil
	}
	now, err := journal.Snapshot(ctx, path)
	return err == nil && e.MatchesAfter(now), err
}

// setAside sets the other configurations aside, recording that in the journal
// before and after.
func (j *job) setAside(ctx context.Context) error {
	noted, err := j.noteAsides(ctx)
	if err != nil {
		return hint(err)
	}
	gone, err := j.renameAll(ctx)
	if err != nil {
		return fmt.Errorf("set aside: %w", hint(err))
	}
	var forgotten, left []journal.Entry
	for _, e := range noted {
		switch {
		case !gone[e.Object]:
			left = append(left, e)
		case e.Kind == kindFile:
			forgotten = append(forgotten, e)
		}
	}
	return hint(errors.Join(j.journal.Forget(ctx, forgotten...), j.journal.Complete(ctx, left...)))
}

// renameAll stops at the first failure: going on could make a file first that never
// was. It returns the files that their owner has removed in the meantime, with
// their backups.
func (j *job) renameAll(ctx context.Context) (gone map[string]bool, err error) {
	gone = map[string]bool{}
	for _, a := range j.asides {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		err := j.rename(a)
		if errors.Is(err, fs.ErrNotExist) {
			gone[a.from], gone[a.to] = true, true
		} else if err != nil {
			return nil, err
		}
	}
	return gone, nil
}

func (j *job) rename(a aside) error {
	from, to := filepath.Base(a.from), filepath.Base(a.to)
	switch {
	case a.to == "":
		return j.confDir().Remove(from)
	case a.replaces:
		return j.confDir().Rename(from, to)
	}
	return j.confDir().RenameNew(from, to)
}

// noteAsides records, all at once, the files that are about to go, with their
// content, and the backups that are about to appear.
func (j *job) noteAsides(ctx context.Context) ([]journal.Entry, error) {
	if j.journal == nil {
		return nil, nil
	}
	if err := j.forgetOlder(ctx); err != nil {
		return nil, err
	}
	var all []journal.Entry
	for _, a := range j.asides {
		entries, err := j.entriesOf(ctx, a)
		if err != nil {
			return nil, err
		}
		all = append(all, entries...)
	}
	if all = j.link(all); len(all) == 0 {
		return nil, nil
	}
	return all, j.journal.Begin(ctx, all...)
}

// forgetOlder drops the entry of a file that was set aside earlier if its owner has
// written another version since: that version is the one to restore.
func (j *job) forgetOlder(ctx context.Context) error {
	var older []journal.Entry
	for _, a := range j.asides {
		e, known := j.known[a.from]
		if !known || a.to == "" {
			continue
		}
		now, err := journal.Snapshot(ctx, a.from)
		if err != nil {
			return err
		}
		if !now.Same(e.Before) {
			older = append(older, e)
			delete(j.known, a.from)
		}
	}
	return j.journal.Forget(ctx, older...)
}

// entriesOf returns the entries of a file and its backup, or none if the file has
// gone.
func (j *job) entriesOf(ctx context.Context, a aside) ([]journal.Entry, error) {
	e, err := files.Entry(ctx, j.journal, a.from, journal.State{})
	if err != nil {
		return nil, err
	}
	old, known := j.known[a.from]
	if known {
		e.Before = old.Before
	}
	if a.to == "" {
		e.Needs = old.Needs
		if !known {
			return nil, nil // a copy of ours, which must not come back
		}
		return []journal.Entry{e}, nil
	}
	if e.Before.Type == "" {
		return nil, nil
	}
	backup := journal.Entry{Kind: kindBackup, Object: a.to, After: e.Before, Boot: e.Boot}
	backup.After.Content, backup.After.Blob = nil, ""
	e.Needs = []string{a.to}
	return []journal.Entry{backup, e}, nil
}

// link makes each file that was set aside need the next one, in the order of their
// names, and the last one need ours: so the file that was first is restored first,
// ours is removed when all are restored, and if one cannot be restored, the rest
// remains as it is. It returns all entries, including recorded ones that have to be
// begun again for this.
func (j *job) link(all []journal.Entry) []journal.Entry {
	if j.conf == nil {
		return all
	}
	known, at := maps.Clone(j.known), map[string]int{} // at: in all
	for i, e := range all {
		known[e.Object], at[e.Object] = e, i
	}
	next := j.conf.path
	for _, path := range slices.Backward(slices.Sorted(maps.Keys(known))) {
		e := known[path]
		if !isAside(e) || filepath.Dir(path) != j.ConfDir || path == j.conf.path {
			continue
		}
		needs := append(backupsOf(e, known), next)
		if next = path; slices.Equal(needs, e.Needs) {
			continue
		}
		i, begun := at[path]
		if !begun {
			i, all = len(all), append(all, e)
		}
		all[i].Needs = needs
	}
	return all
}
