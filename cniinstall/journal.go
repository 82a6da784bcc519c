// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// The kinds of entries. Another program's configuration that was set aside is a
// file that was left absent, and needs its backup, which has its own entry: all
// files in turn at a path, theirs or ours, are one entry with one original.
const (
	kindFile   = "cni/file"
	kindDir    = "cni/dir"
	kindBackup = "cni/backup"
)

var files = journal.Files{Kind: "cni"}

// recorded lists the files and backups that the step has recorded, by path.
func recorded(ctx context.Context, j *journal.Journal) (map[string]journal.Entry, error) {
	entries, err := j.Recorded(ctx)
	known := map[string]journal.Entry{}
	for _, e := range entries {
		if e.Kind == kindFile || e.Kind == kindBackup {
			known[e.Object] = e
		}
	}
	return known, err
}

// isConf reports whether e is about a configuration rather than a plugin.
func isConf(e journal.Entry) bool { return e.Kind == kindFile && isConfName(e.Object) }

// isPlugin reports whether we left a plugin at e's path.
func isPlugin(e journal.Entry) bool { return isOurs(e) && !isConf(e) }

// isOurs reports whether we left a file at e's path.
func isOurs(e journal.Entry) bool { return e.Kind == kindFile && e.After.Type != "" }

// isAside reports whether e is about a configuration that existed before ours and
// was set aside.
func isAside(e journal.Entry) bool { return isConf(e) && e.After.Type == "" && e.Before.Type != "" }

// backupsOf lists the backups that were made of e's object.
func backupsOf(e journal.Entry, known map[string]journal.Entry) []string {
	return slices.DeleteFunc(slices.Clone(e.Needs), func(path string) bool { return known[path].Kind != kindBackup })
}

// note records the files to publish even before they are written under temporary
// names, so that an undo also removes a killed run's leftovers of those.
func (j *job) note(ctx context.Context) error {
	if j.journal == nil {
		return nil
	}
	var all []journal.Entry
	for _, t := range j.noted() {
		after := t.after()
		if t.need != content {
			now, err := journal.Snapshot(ctx, t.path)
			if err != nil {
				return err
			}
			after.SHA256 = now.SHA256
		}
		needs, err := j.needs(t)
		if err != nil {
			return err
		}
		if t.entry, err = files.Entry(ctx, j.journal, t.path, after, needs...); err != nil {
			return err
		}
		t.entry.Loose = j.isLoose(t)
		all = append(all, t.entry)
	}
	if len(all) == 0 {
		return nil
	}
	return j.journal.Begin(ctx, all...)
}

// noted returns the targets to record. Our configuration is the newest, and so the
// first to be removed, even if only plugins change.
func (j *job) noted() []*target {
	noted := j.pending(attributes, content)
	if j.conf != nil && j.conf.need == nothing && len(noted) > 0 && isOurs(j.known[j.conf.path]) {
		noted = append(noted, j.conf)
	}
	return noted
}

// after is the intended state of the target, without the hash of its content.
func (t *target) after() journal.State {
	return journal.State{Type: "file", Mode: uint32(t.mode), UID: os.Geteuid(), GID: os.Getegid(), Size: t.size}
}

// needs lists the objects that a target depends on: the plugins that the
// configuration needs, some perhaps installed by another step, and the backups of
// earlier files in its place.
func (j *job) needs(t *target) (paths []string, err error) {
	if t != j.conf {
		return nil, nil
	}
	entries, err := j.journal.Entries()
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if _, ours := j.known[e.Object]; isPlugin(e) && (!ours || slices.Contains(j.binDirs(), filepath.Dir(e.Object))) && j.net.needs(filepath.Base(e.Object)) {
			paths = append(paths, e.Object)
		}
	}
	for _, t := range j.plugins {
		if t.need != nothing && j.net.needs(t.plugin) {
			paths = append(paths, t.path)
		}
	}
	return append(unique(paths), backupsOf(j.known[t.path], j.known)...), nil
}

// noteSums records the hash of each file's content, now that it is known.
func (j *job) noteSums(ctx context.Context) error {
	if j.journal == nil {
		return nil
	}
	var all []journal.Entry
	for _, t := range j.noted() {
		if t.staged != nil {
			t.entry.After.SHA256 = t.staged.sum
		}
		all = append(all, t.entry)
	}
	if len(all) == 0 {
		return nil
	}
	return j.journal.Begin(ctx, all...)
}

func (j *job) complete(ctx context.Context) error {
	if j.journal == nil {
		return nil
	}
	var all []journal.Entry
	for _, t := range j.noted() {
		info, err := j.dirOf(t).Lstat(t.name())
		if err != nil {
			return err
		}
		t.entry.After.File = identity(info)
		all = append(all, t.entry)
	}
	return j.journal.Complete(ctx, all...)
}

// isSuccessor reports whether the file, though equal, is not the one we left:
// neither its inode nor its modification time matches. A package with the same
// plugin has put it there. On a copied disk the time still matches, and after a
// touch the inode does.
func isSuccessor(e journal.Entry, info fs.FileInfo) bool {
	inode, modified, _ := strings.Cut(identity(info), " ")
	return !slices.ContainsFunc(e.LeftAs(), func(s journal.State) bool {
		wasInode, wasModified, known := strings.Cut(s.File, " ")
		return !known || inode == wasInode || modified == wasModified
	})
}

// settle determines the outcome of entries that a killed or failed run has begun,
// so that they can be begun again.
func (j *job) settle(ctx context.Context) error {
	known, err := recorded(ctx, j.journal)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	var done, gone []journal.Entry
	var errs []error
	for _, e := range known {
		if e.Done {
			continue
		}
		now, err := journal.Snapshot(ctx, e.Object)
		switch {
		case err != nil:
			errs = append(errs, err)
		case now.Same(e.Before) && e.Was == nil:
			gone = append(gone, e)
		case now.Same(e.Before): // the recorded file was removed: keep the record
			e.After = *e.Was
			done = append(done, e)
		case e.MatchesAfter(now):
			now.Xattrs = e.After.Xattrs // as in complete: the system assigns the label
			// A file that others had changed and is now as wanted again was
			// published.
			back := e.Was != nil && e.After.SHA256 == e.Was.SHA256
			if e.After = now; e.Was != nil && now.Same(*e.Was) && !back {
				e.After.File = e.Was.File // it was not published
			} else if info, err := os.Lstat(e.Object); err == nil && info.Mode().IsRegular() {
				e.After.File = identity(info)
			}
			done = append(done, e)
		}
	}
	if len(done)+len(gone) > 0 {
		errs = append(errs, j.journal.Complete(ctx, done...), j.journal.Forget(ctx, gone...))
		j.known, err = recorded(ctx, j.journal)
	}
	return hint(errors.Join(append(errs, err)...))
}
