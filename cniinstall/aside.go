// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/cniconf"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/input"
)

// backupLimit is the maximum number of backups of the same name.
const backupLimit = 1000

// The limits of what is set aside in one directory, including earlier files: all of it
// is in the ledger, which each later run reads. A node has a handful of
// configurations, of about a kilobyte each; runtimes load one of them, or a few.
const (
	maxAsides     = 100
	maxAsideBytes = 4 << 20
)

// aside is a configuration to set aside, or a copy of ours to remove.
type aside struct {
	from, to string // paths; no to: it is removed
	next     string // what has to go, or to be published, before
	size     int64
	isCopy   bool // of ours
	wants    []ledger.Want
}

// checkExclusive rejects an Install that would leave a node without a
// configuration, or with one too many.
func (i Install) checkExclusive() error {
	last := filepath.Ext(i.BackupSuffix)
	_, isInPlace := i.inPlace()
	switch {
	case !i.Exclusive:
		return nil
	case isInPlace:
		return errors.New("a plugin in another CNI's configuration is not the only one: Exclusive and InPlace exclude each other")
	case i.Config == nil:
		return errors.New("no CNI configuration given to be the only one")
	case !isFileName(i.BackupSuffix) || !strings.HasPrefix(i.BackupSuffix, ".") || last == "." || slices.Contains(cniconf.Suffixes, last):
		return fmt.Errorf("backup suffix %q: needs a dot, a name, and an ending that no runtime loads (%s are loaded)",
			i.BackupSuffix, strings.Join(cniconf.Suffixes, ", "))
	}
	return nil
}

// findAsides lists the files to set aside, last name first: the directory's first file
// stays first until it is set aside, and then ours is first. Each needs the one before it
// to have gone, and so it comes back before that does, and ours goes last. If one cannot be
// restored, the rest remains as it is. Those that have gone already are listed again, since
// what they need may have changed.
func (j *job) findAsides(ctx context.Context) error {
	if !j.Exclusive {
		return nil
	}
	names, err := j.directory(j.files).others(ctx)
	if err != nil {
		return err
	}
	for _, o := range j.files.asides(j.ConfDir) {
		names = append(names, filepath.Base(o.Object))
	}
	next := filepath.Join(j.ConfDir, j.ConfName)
	for _, name := range slices.Backward(unique(names)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		a := aside{from: filepath.Join(j.ConfDir, name), next: next}
		if a.from == filepath.Join(j.ConfDir, j.ConfName) {
			continue // ours took its place
		}
		if leaves, err := j.leavesOwn(ctx, a.from); err != nil || leaves {
			if err != nil {
				return hint(err)
			}
			continue
		}
		if err := j.plan(ctx, &a); err != nil {
			return hint(err)
		}
		j.asides = append(j.asides, a)
		if _, isOld := j.files.original(a.from); isOld || !a.isCopy { // it comes back
			next = a.from
		}
	}
	return j.boundAsides()
}

// leavesOwn reports whether the file is ours under an earlier name, which the ledger undoes,
// unless another's would come back there.
func (j *job) leavesOwn(ctx context.Context, path string) (bool, error) {
	if !j.files.isOwnConf(path) {
		return false, nil
	}
	if _, isOld := j.files.original(path); isOld {
		return false, nil
	}
	o, _, _ := j.files.at(path)
	return isAsLeft(ctx, o)
}

// plan determines what is wanted for a file that is to go.
func (j *job) plan(ctx context.Context, a *aside) error {
	after := (ledger.Want{Kind: j.kinds.aside, Object: a.next}).ID()
	gone := ledger.Want{Kind: j.kinds.aside, Object: a.from}
	var err error
	if a.isCopy, err = j.isCopyOfOurs(ctx, a.from); err != nil {
		return err
	}
	gone.OwnCopy = a.isCopy
	a.wants = j.backups(ctx, a.from)
	if isThere(a.from) && !a.isCopy {
		backup := ledger.Want{Kind: j.kinds.aside, NoAdopt: true} // it is others'
		if backup.To, err = j.asideState(ctx, a); err != nil {
			return err
		}
		if a.to, err = j.backupOf(ctx, filepath.Base(a.from)); err != nil {
			return err
		}
		backup.Object = a.to
		a.wants = append(slices.DeleteFunc(a.wants, func(w ledger.Want) bool { return w.ID() == backup.ID() }), backup)
	}
	for _, backup := range a.wants {
		gone.Needs = append(gone.Needs, backup.ID())
	}
	slices.Sort(gone.Needs)
	gone.Needs = append(gone.Needs, after)
	a.wants = append(a.wants, gone)
	return nil
}

// backups lists the recorded backups of a file, unless others have changed them.
func (j *job) backups(ctx context.Context, path string) (wants []ledger.Want) {
	for _, o := range j.files.files {
		_, _, mine := j.files.at(o.Object)
		if !mine || o.Object != j.files.inDir(j.ConfDir, filepath.Base(o.Object)) || !slices.Contains(origins(filepath.Base(o.Object)), filepath.Base(path)) {
			continue
		}
		if isLeft, err := isAsLeft(ctx, o); err == nil && isLeft {
			wants = append(wants, ledger.Want{Kind: j.kinds.aside, Object: o.Object, To: o.Left})
		}
	}
	return wants
}

// asideState reads a file that is to be set aside.
func (j *job) asideState(ctx context.Context, a *aside) (s ledger.State, err error) {
	info, err := os.Lstat(a.from)
	if err == nil && info.Mode().IsRegular() {
		if a.size = info.Size(); a.size > input.MaxNetwork {
			return s, fmt.Errorf("%w, so it is no CNI configuration: move it away", input.TooLarge(a.from, input.MaxNetwork))
		}
	}
	return j.kinds.aside.Read(ctx, a.from)
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
	for _, o := range j.files.asides(j.ConfDir) {
		if !coming[o.Object] {
			files, bytes = files+1, bytes+o.Original.Size
		}
	}
	if files <= maxAsides && bytes <= maxAsideBytes {
		return nil
	}
	return fmt.Errorf("%s has %d other configurations to set aside, or set aside before, of %d bytes in total; the limits are %d files and %d bytes: remove those that no CNI needs, or do not install ours as the only one",
		j.ConfDir, files, bytes, maxAsides, maxAsideBytes)
}

// backupOf finds the path for a backup: an unused one, or that of an older version's
// backup, if it is as we left it. The older backup is no longer needed: without us,
// its owner would have overwritten that version.
func (j *job) backupOf(ctx context.Context, name string) (string, error) {
	f := j.directory(j.files)
	for n := range backupLimit {
		path := filepath.Join(f.Dir, f.backup(name, n))
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return path, nil
		} else if err != nil {
			return "", err
		}
		if o, _, known := j.files.at(path); known && o.Original.IsZero() {
			if ours, err := isAsLeft(ctx, o); err != nil || ours {
				return path, err
			}
		}
	}
	return "", fmt.Errorf("%s: it has %d backups already", filepath.Join(f.Dir, name), backupLimit)
}

// isCopyOfOurs reports whether the file has the content of a configuration that we
// installed, because it was moved or copied there. As a backup it would replace
// that of the original file of this name.
func (j *job) isCopyOfOurs(ctx context.Context, path string) (bool, error) {
	info, err := os.Lstat(path)
	if err != nil || info.Size() > input.MaxNetwork {
		return false, durable.IgnoreGone(err) // setting it aside reveals what it is instead
	}
	now, err := j.kinds.aside.Read(ctx, path)
	return now.Type == "file" && slices.ContainsFunc(j.files.files, func(o ledger.Record) bool {
		return j.files.isOwnConf(o.Object) && o.Left.SHA256 == now.SHA256
	}), err
}

// readWhole reads a file that will be moved, and so can be brought back even if it was written
// just now.
func readWhole(ctx context.Context, path string) (ledger.State, error) {
	now, err := readConf(ctx, path)
	now.Changed = time.Unix(0, 0)
	return now, err
}

// moveAside goes no further than what has to go before: else a file could become the first
// that never was.
func (j *job) moveAside(ctx context.Context, path string, to ledger.State) error {
	for _, a := range j.asides {
		if !a.concerns(path, to) {
			continue
		}
		isOurs := filepath.Base(a.next) == j.ConfName
		if isOurs && !holds(ctx, a.next, j.raw) || !isOurs && isThere(a.next) {
			return fmt.Errorf("left off: %s is not as it should be", a.next)
		}
	}
	return writeConf(ctx, path, to)
}

// concerns reports whether a write sets the file aside, and does not bring it back.
func (a aside) concerns(path string, to ledger.State) bool {
	return a.from == path && to.IsZero() || a.to == path && !to.IsZero()
}

// describeAside says once for both files what is done.
func (j *job) describeAside(path string, from, to ledger.State) string {
	for _, a := range j.asides {
		switch {
		case !a.concerns(path, to):
		case a.to == "":
			return "remove " + path
		default:
			return fmt.Sprintf("set aside %s as %s", a.from, filepath.Base(a.to))
		}
	}
	return ledger.File().Describe(path, from, to)
}
