// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

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
// writers of one directory wait for each other, as long as ctx lets them.
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
	begin      func(*os.Root, *layout) error // called before the first change, with dir locked; may be nil
	step       func(string)                  // called with a description before each change; may be nil
}

func (j job) run(ctx context.Context) (changed bool, err error) {
	if j.step == nil {
		j.step = func(string) {}
	}
	if err := ctx.Err(); err != nil {
		return false, hint(j.dir, err)
	}
	made, err := makeDirs(j.dir, j.step)
	if err != nil {
		return false, hint(j.dir, err)
	}
	root, err := os.OpenRoot(j.dir)
	if err != nil {
		return made, hint(j.dir, err)
	}
	defer root.Close()
	unlock, err := lockDir(ctx, j.dir)
	if err != nil {
		return made, hint(j.dir, err)
	}
	defer unlock()
	wrote, err := j.write(ctx, root)
	return made || wrote, hint(j.dir, err)
}

// write brings a directory, which is locked, to what it should be.
func (j job) write(ctx context.Context, root *os.Root) (changed bool, err error) {
	l, err := j.inspect(ctx, root)
	if err != nil || l.done() {
		return false, err
	}
	if j.begin != nil {
		if err := j.begin(root, l); err != nil {
			return false, err
		}
	}
	return true, writer{root: root, want: j.want, step: j.step}.write(ctx, l)
}

// inspect looks at a directory, and for what forbids to write it.
func (j job) inspect(ctx context.Context, root *os.Root) (*layout, error) {
	l, err := inspect(ctx, root, j.want)
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
	if j.dir == "" {
		return nil, errNoDir
	}
	root, err := os.OpenRoot(j.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return &layout{add: slices.Sorted(maps.Keys(j.want))}, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return j.inspect(ctx, root)
}

// makeDirs makes dir and its missing parents, each synced into its parent.
func makeDirs(dir string, step func(string)) (bool, error) {
	if dir == "" {
		return false, errNoDir
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return false, errors.New("it is not a directory")
	}
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if parent != dir {
		if _, err := makeDirs(parent, step); err != nil {
			return false, err
		}
	}
	step("make directory " + dir)
	if err := os.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return false, err
	}
	if err := os.Chmod(dir, dirMode); err != nil { // whatever the umask
		return true, err
	}
	return true, durable.SyncDir(parent)
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
	case errors.Is(err, errReadOnly):
		return fmt.Errorf("%w (the mount is read-only: mount an emptyDir or a hostPath there without readOnly)", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w (needs write access to the directory, or the capability DAC_OVERRIDE)", err)
	}
	return err
}
