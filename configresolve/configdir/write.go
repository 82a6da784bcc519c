// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/durable"
)

// ErrEmpty is matched by the error of a write that would replace a configuration by
// one without keys. That is rarely intended: an unset variable in the name of a
// source, or an empty file, resolves to no keys without an error. To do it on
// purpose, use a [Writer] with AllowEmpty.
var ErrEmpty = code.New(code.ConfigEmpty, "no source sets any key")

// Write writes config to dir in the layout in which the kubelet mounts a ConfigMap:
// files of mode 0644 in one dated directory, a symbolic link ..data to that
// directory, and a link for each key. Besides the keys that are set, it writes
// [configresolve.KeySources] and [configresolve.KeyOverrides]. Missing directories
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
// writers of the same directory wait for each other, for ten seconds at most, using
// a directory ..lock that exists meanwhile and that no other user can open: any
// reader of dir could hold a lock on dir itself forever. A symbolic link on the
// path to dir is followed only if no user but root and the caller can have made it;
// links in dir are never followed.
func Write(ctx context.Context, dir string, config *configresolve.Config) (changed bool, err error) {
	if config == nil {
		return false, hint(dir, errNoConfig)
	}
	return job{dir: dir, want: config.Data()}.run(ctx)
}

// job is one write of a directory.
type job struct {
	dir        string
	want       map[string]string
	allowEmpty bool
	journal    *journal.Journal // where the write is recorded; may be nil
	step       func(string)     // called with a description before each change; may be nil
}

func (j job) run(ctx context.Context) (changed bool, err error) {
	if j.step == nil {
		j.step = func(string) {}
	}
	changed, err = j.lockAndWrite(ctx)
	return changed, hint(j.dir, err)
}

func (j job) lockAndWrite(ctx context.Context) (changed bool, err error) {
	if err := errors.Join(ctx.Err(), j.validate()); err != nil {
		return false, err
	}
	if j.journal != nil { // the journal uses absolute paths
		if j.dir, err = filepath.Abs(j.dir); err != nil {
			return false, err
		}
	}
	d, err := j.open(ctx)
	if err != nil {
		return false, err
	}
	defer d.Close()
	l, err := j.inspect(ctx, d)
	if err != nil {
		return false, err
	}
	if l.done() {
		return false, j.complete(ctx)
	}
	if err := j.begin(ctx, d, l); err != nil {
		return false, err
	}
	unlock, err := lock(ctx, d)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return j.write(ctx, d)
}

func (j job) validate() error {
	if j.dir == "" {
		return errNoDir
	}
	if len(j.want) > maxKeys {
		return fmt.Errorf("%d keys are more than %d", len(j.want), maxKeys)
	}
	return nil
}

// open opens the directory, and makes it if it is missing.
func (j job) open(ctx context.Context) (*durable.Dir, error) {
	d, err := durable.OpenDir(j.dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return d, err
	}
	j.step("make directory " + j.dir)
	if err := files.MkdirAll(ctx, j.journal, j.dir, dirMode); err != nil {
		return nil, err
	}
	return durable.OpenDir(j.dir)
}

// write changes a directory, which must be locked, to what it should be.
func (j job) write(ctx context.Context, d *durable.Dir) (changed bool, err error) {
	l, err := j.inspect(ctx, d)
	if err != nil {
		return false, err
	}
	l.litter = withoutLock(l.litter)
	if l.done() { // another writer was faster
		return false, j.complete(ctx)
	}
	if err := (writer{dir: d.Unsynced(), want: j.want, step: j.step}).write(ctx, l); err != nil {
		return true, err
	}
	return true, j.complete(ctx)
}

// inspect reads a directory, and checks whether it may be written to.
func (j job) inspect(ctx context.Context, d *durable.Dir) (*layout, error) {
	l, err := inspect(ctx, d, j.want)
	if err == nil {
		err = l.foreign(d)
	}
	if err == nil {
		err = l.blocked
	}
	if err == nil && !j.allowEmpty {
		err = l.emptied(j.want)
	}
	return l, err
}

// look is inspect for a directory that need not exist.
func (j job) look(ctx context.Context) (*layout, error) {
	if err := j.validate(); err != nil {
		return nil, err
	}
	d, err := durable.OpenDir(j.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return &layout{add: slices.Sorted(maps.Keys(j.want))}, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return j.inspect(ctx, d)
}

var errNoDir = errors.New("no directory given")

// hint names the directory and, if access is denied, the missing permission.
func hint(dir string, err error) error {
	if err == nil {
		return nil
	}
	return remedy(fmt.Errorf("write configuration to %s: %w", dir, err))
}

// remedy adds the missing permission if access is denied.
func remedy(err error) error {
	switch {
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w (the mount is read-only: mount an emptyDir or a hostPath there without readOnly)", err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w (needs free space and free inodes: see df, and df -i)", err)
	case errors.Is(err, syscall.EBUSY):
		return fmt.Errorf("%w (something is mounted on it: unmount that first)", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w (needs write access to the directory, or the capability DAC_OVERRIDE)", err)
	}
	return err
}
