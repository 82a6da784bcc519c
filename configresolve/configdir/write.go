// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"syscall"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// ErrEmpty is matched by the error of a write that would replace a configuration by
// one without keys. That is rarely intended: an unset variable in the name of a
// source, or an empty file, resolves to no keys without an error. To do it on
// purpose, empty the directory first.
var ErrEmpty = code.New(code.ConfigEmpty, "no source sets any key")

// Write writes config to dir in the layout in which the kubelet mounts a ConfigMap:
// files of mode 0644 in one dated directory, a symbolic link ..data to that
// directory, and a link for each key. Besides the keys that are set, it writes
// config-sources and config-sources-overrides. Missing directories
// are made with mode 0755.
//
// A reader sees either the old values or the new ones: ..data is swapped by a
// rename, and at no time, not even after a crash, is a key's link dangling.
// Everything is synced before Write returns. Write also removes the leftovers of an
// interrupted run, or of another writer of this layout: data directories that
// ..data does not show, links of keys that no longer exist, files in the place of a
// key's link. Other files are not touched. If there is a directory in the place of
// a key or of a value, or dir is not empty and does not have this layout, the error
// names it, and nothing is changed. If config has no keys but dir has some, nothing
// is changed either, and the error is [ErrEmpty].
//
// If dir already contains config, nothing is written and changed is false. Two
// writers of the same directory wait for each other, for ten seconds at most, and the
// last one's layout stands. They use a directory ..lock that exists meanwhile and that
// no other user can open: any reader of dir could hold a lock on dir itself forever. A
// symbolic link on the path to dir is followed only if no user but root and the caller
// can have made it; links in dir are never followed.
func Write(ctx context.Context, dir string, config *configresolve.Config) (changed bool, err error) {
	j, err := Writer{Path: dir, Config: config}.job()
	if err != nil {
		return false, err
	}
	return j.writeAlone(ctx)
}

// writeAlone writes the directory without a plan, and records nothing. Another writer may
// follow at once: what that makes of the directory is no failure of this write.
func (j job) writeAlone(ctx context.Context) (changed bool, err error) {
	j.left = &ledger.State{}
	wants, err := j.wants(ctx)
	if err != nil {
		return false, err
	}
	var unrecorded *ledger.Book
	done, err := unrecorded.Apply(ctx, "", wants)
	return len(done.Changes) > 0, err
}

// job is one write of a directory.
type job struct {
	dir    string
	want   map[string]string
	values map[string]value // of want
	change string           // what a write would change
	step   func(string)     // called with a description before each change; may be nil

	// left is how a write without a plan has left the directory, read before it gave up the
	// lock. Nil in a plan: a book that is used again must not see what is past.
	left *ledger.State
	seen map[string]fs.FileInfo // directories as they were read: a user may exchange them
}

func (j job) validate() error {
	if j.dir == "" {
		return errNoDir
	}
	if len(j.want) > maxKeys {
		return fmt.Errorf("%d keys are more than %d", len(j.want), maxKeys)
	}
	size := 0
	for _, text := range j.want {
		size += len(text)
	}
	if size > maxBytes {
		return fmt.Errorf("its values have %d bytes, more than %d", size, maxBytes)
	}
	return nil
}

// write changes the directory to what it should be.
func (j job) write(ctx context.Context) error {
	err := j.locked(ctx, j.dir, j.values, func(d *durable.Dir, l *layout) error {
		err := j.refusal(d, l)
		if err == nil && !l.done() { // else another writer was faster
			err = j.writer(d).write(ctx, l)
		}
		if err != nil || j.left == nil {
			return err
		}
		if l, err = inspectLocked(ctx, d, j.values); err == nil {
			*j.left = l.state()
		}
		return err
	})
	j.beforeStep("leave " + j.dir)
	return err
}

// remove removes the configuration, or a killed run's leftovers of one.
func (j job) remove(ctx context.Context, dir string) error {
	return j.locked(ctx, dir, nil, func(d *durable.Dir, l *layout) error {
		w := j.writer(d)
		if err := w.removeLinks(l.links()); err != nil {
			return err
		}
		return errors.Join(w.removeLitter(append(l.litter, l.dataDir()...)), w.dir.Sync())
	})
}

// sweep removes what a killed writer has left beside a configuration.
func (j job) sweep(ctx context.Context, dir string) error {
	err := j.locked(ctx, dir, nil, func(d *durable.Dir, l *layout) error {
		if l.linkOf[dataLink] == "" {
			return nil
		}
		w := j.writer(d)
		return errors.Join(w.removeLitter(l.litter), w.dir.Sync())
	})
	if isGone(err) {
		return nil
	}
	return err
}

func (j job) writer(d *durable.Dir) writer {
	return writer{dir: d.Unsynced(), want: j.want, step: j.beforeStep}
}

func (j job) beforeStep(step string) {
	if j.step != nil {
		j.step(step)
	}
}

// locked calls f with the directory and its layout, while other writers are kept out of it.
func (j job) locked(ctx context.Context, dir string, want map[string]value, f func(*durable.Dir, *layout) error) (err error) {
	defer func() { err = hint(dir, err) }()
	d, err := durable.OpenDir(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	info, err := d.Stat()
	if seen := j.seen[dir]; err == nil && seen != nil && !os.SameFile(seen, info) {
		err = fmt.Errorf("it is %w: another has taken its place just now", ledger.ErrChanged)
	}
	if err != nil {
		return err
	}
	unlock, err := lock(ctx, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	l, err := inspectLocked(ctx, d, want)
	if err != nil {
		return err
	}
	return f(d, l)
}

// inspectLocked is inspect while this process holds the lock, which is no litter then.
func inspectLocked(ctx context.Context, d *durable.Dir, want map[string]value) (*layout, error) {
	l, err := inspect(ctx, d, want)
	if err == nil {
		l.litter = slices.DeleteFunc(l.litter, func(name string) bool { return name == lockName })
	}
	return l, err
}

// refusal returns why the directory must not be written to.
func (j job) refusal(d *durable.Dir, l *layout) error {
	err := l.foreign(d)
	if err == nil {
		err = l.blocked
	}
	if err == nil {
		err = l.emptied()
	}
	return err
}

// look reads a directory that need not exist, and checks whether it may be written to.
func (j job) look(ctx context.Context) (*layout, error) {
	d, err := durable.OpenDir(j.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return &layout{want: j.values, add: slices.Sorted(maps.Keys(j.want))}, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	l, err := inspect(ctx, d, j.values)
	if err != nil {
		return nil, err
	}
	return l, j.refusal(d, l)
}

var errNoDir = errors.New("no directory given")

// hint names the directory and, if access is denied, the missing permission.
func hint(dir string, err error) error {
	if err == nil {
		return nil
	}
	return denied(fmt.Errorf("write configuration to %s: %w", dir, err))
}

// denied adds the missing permission if access is denied.
func denied(err error) error {
	switch {
	case errors.Is(err, syscall.EROFS):
		return remedy.Add(err, "the mount is read-only: mount an emptyDir or a hostPath there without readOnly")
	case errors.Is(err, fs.ErrPermission):
		return remedy.Add(err, "needs write access to the directory, or the capability DAC_OVERRIDE")
	}
	return remedy.File(err)
}
