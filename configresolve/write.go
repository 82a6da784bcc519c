// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

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
	"github.com/slipway-dev/slipway/internal/durable"
)

// ErrEmpty is matched by the error of a write that would replace a
// configuration by one that has no keys. That is seldom meant: an unset
// variable in the name of a source, or a file that is empty, resolves to no
// keys without an error. [Write] with AllowEmpty does it.
var ErrEmpty = errors.New("no source sets any key")

// WriteDir brings dir to hold config as the kubelet mounts a ConfigMap: files
// of mode 0644 in one dated directory that the link ..data shows, and a link
// for each key. Beside the keys that are set it writes [KeySources] and
// [KeyOverrides]. Missing directories are made with mode 0755.
//
// A reader sees the old values or the new ones: ..data is swapped by a rename,
// and at no moment, nor after a crash, is there a link of a key that leads
// nowhere. Everything is synced before WriteDir returns. It puts right what an
// interrupted run, or another writer of this layout, has left: data directories
// that nothing shows, links of keys that are no more, files in the place of a
// key's link. Other files are left alone. A directory in the place of a key is
// an error that names it, and nothing is changed then. Nor is anything where
// config has no keys and dir has: that is [ErrEmpty].
//
// Where dir holds config already, nothing is written and changed is false. Two
// writers of one directory wait for each other, ten seconds at most: whoever may
// read the directory could hold its lock for ever. A symbolic link on the way to
// dir is followed only if nobody but root and the caller can have put it there,
// and none is below it.
func WriteDir(ctx context.Context, dir string, config *Config) (changed bool, err error) {
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
	if j.journal != nil { // which knows absolute paths
		if j.dir, err = filepath.Abs(j.dir); err != nil {
			return false, err
		}
	}
	d, err := j.open(ctx)
	if err != nil {
		return false, err
	}
	defer d.Close()
	if err := lock(ctx, d); err != nil {
		return false, err
	}
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

// open opens the directory, which is made if it is missing.
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

// write brings a directory, which is locked, to what it should be.
func (j job) write(ctx context.Context, d *durable.Dir) (changed bool, err error) {
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
	if err := (writer{dir: d.Unsynced(), want: j.want, step: j.step}).write(ctx, l); err != nil {
		return true, err
	}
	return true, j.complete(ctx)
}

// inspect looks at a directory, and for what forbids to write it.
func (j job) inspect(ctx context.Context, d *durable.Dir) (*layout, error) {
	l, err := inspect(ctx, d, j.want)
	if err == nil {
		err = l.blocked
	}
	if err == nil && !j.allowEmpty {
		err = l.emptied(j.want)
	}
	return l, err
}

// look is inspect of a directory that need not exist.
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

// hint names the directory, and what is missing where access is denied.
func hint(dir string, err error) error {
	if err == nil {
		return nil
	}
	return remedy(fmt.Errorf("write configuration to %s: %w", dir, err))
}

// errNeedsChown goes with the error of a change of owner.
var errNeedsChown = errors.New("needs the capability CHOWN: it belonged to another user")

// remedy says what is missing where access is denied.
func remedy(err error) error {
	switch {
	case errors.Is(err, errNeedsChown):
		return err
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
