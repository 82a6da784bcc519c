// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/slipway-dev/slipway/internal/durable"
)

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
// an error that names it, and nothing is changed then.
//
// Where dir holds config already, nothing is written and changed is false. Two
// writers of one directory wait for each other, as long as ctx lets them.
func WriteDir(ctx context.Context, dir string, config *Config) (changed bool, err error) {
	if config == nil {
		return false, hint(dir, errNoConfig)
	}
	return writeDir(ctx, dir, config.Data(), func(string) {})
}

// writeDir calls step with a description before each change that it makes.
func writeDir(ctx context.Context, dir string, want map[string]string, step func(string)) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, hint(dir, err)
	}
	made, err := makeDirs(dir, step)
	if err != nil {
		return false, hint(dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, hint(dir, err)
	}
	defer root.Close()
	unlock, err := lockDir(ctx, dir)
	if err != nil {
		return false, hint(dir, err)
	}
	defer unlock()
	l, err := inspect(ctx, root, want)
	if err == nil {
		err = l.blocked
	}
	if err != nil {
		return made, hint(dir, err)
	}
	if l.done() {
		return made, nil
	}
	return true, hint(dir, writer{root, want, step}.write(ctx, l))
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

// writer makes changes, each a single system call or made good by the next
// run. The temporary names of package durable would be taken for keys by the
// readers of this directory, hence names of its own, below "..".
type writer struct {
	root *os.Root
	want map[string]string
	step func(string)
}

// write makes the directory as it should be. The order is such that no link of
// a key ever leads nowhere: links of keys that go are removed before the swap,
// those of new keys made after it.
func (w writer) write(ctx context.Context, l *layout) error {
	fresh := ""
	if !l.same {
		var err error
		if fresh, err = w.newData(ctx); err != nil {
			return err
		}
	}
	if err := w.removeLinks(l.remove); err != nil {
		return err
	}
	if fresh != "" {
		if err := errors.Join(w.sync("."), w.link(fresh, dataLink), w.sync(".")); err != nil {
			return err
		}
		if l.data != "" {
			l.litter = append(l.litter, l.data)
		}
	}
	for _, key := range l.add {
		if err := w.link(path.Join(dataLink, key), key); err != nil {
			return err
		}
	}
	return errors.Join(w.removeLitter(l.litter), w.sync("."))
}

// newData writes a data directory, which nothing shows yet, and syncs it. What
// a failure leaves of it is removed.
func (w writer) newData(ctx context.Context) (string, error) {
	name, err := w.makeData()
	if err != nil {
		return "", err
	}
	if err := w.fill(ctx, name); err != nil {
		return "", errors.Join(err, w.removeData(name))
	}
	return name, nil
}

// makeData takes a name that no other run has, be it within the same second.
func (w writer) makeData() (string, error) {
	for {
		name := time.Now().UTC().Format("..2006_01_02_15_04_05.") + strconv.FormatUint(rand.Uint64(), 10)
		w.step("make directory " + name)
		err := w.root.Mkdir(name, dirMode)
		if err == nil {
			return name, w.root.Chmod(name, dirMode)
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
}

// fill writes the files and then syncs them: while the first ones are waited
// for, the disk is at work on the others.
func (w writer) fill(ctx context.Context, name string) error {
	const atOnce = 256 // files open at the same time
	for keys := range slices.Chunk(slices.Sorted(maps.Keys(w.want)), atOnce) {
		if err := w.writeFiles(ctx, name, keys); err != nil {
			return err
		}
	}
	return w.sync(name)
}

func (w writer) writeFiles(ctx context.Context, dir string, keys []string) (err error) {
	var files []*os.File
	defer func() {
		for _, f := range files {
			err = errors.Join(err, f.Close())
		}
	}()
	for _, key := range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		w.step("write " + key)
		f, err := w.root.OpenFile(path.Join(dir, key), os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
		if err != nil {
			return err
		}
		files = append(files, f)
		if _, err := f.WriteString(w.want[key]); err != nil {
			return err
		}
		if err := f.Chmod(fileMode); err != nil { // the umask may have taken bits away
			return err
		}
		durable.StartWriteback(f)
	}
	for _, f := range files {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// link puts a link in its place at once, over what is there.
func (w writer) link(target, name string) error {
	temp := tempPrefix + strconv.FormatUint(rand.Uint64(), 10)
	w.step("make link for " + name)
	if err := w.root.Symlink(target, temp); err != nil {
		return err
	}
	w.step("rename link to " + name)
	if err := w.root.Rename(temp, name); err != nil {
		return errors.Join(err, w.root.Remove(temp))
	}
	return nil
}

func (w writer) removeLinks(names []string) error {
	for _, name := range names {
		w.step("remove link " + name)
		if err := w.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (w writer) removeLitter(names []string) error {
	var errs []error
	for _, name := range slices.Compact(names) {
		errs = append(errs, w.removeData(name))
	}
	return errors.Join(errs...)
}

// removeData removes a link, or a directory with its files. It goes no deeper:
// a data directory has none in it.
func (w writer) removeData(name string) error {
	info, err := w.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		entries, err := fs.ReadDir(w.root.FS(), name)
		if err != nil {
			return err
		}
		for _, e := range entries {
			w.step("remove " + e.Name())
			if err := w.root.Remove(path.Join(name, e.Name())); err != nil {
				return fmt.Errorf("remove an old version: %w", err)
			}
		}
	}
	w.step("remove " + name)
	return w.root.Remove(name)
}

func (w writer) sync(name string) error {
	return durable.SyncDir(filepath.Join(w.root.Name(), name))
}

var errNoDir = errors.New("no directory given")

// hint names the directory and, where access is denied, what is missing.
func hint(dir string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("write configuration to %s: %w", dir, err)
	switch {
	case errors.Is(err, errReadOnly):
		return fmt.Errorf("%w (the mount is read-only: mount an emptyDir or a hostPath there without readOnly)", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w (needs write access to the directory, or the capability DAC_OVERRIDE)", err)
	}
	return err
}
