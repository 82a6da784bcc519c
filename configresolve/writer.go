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
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/filemode"
	"github.com/slipway-dev/slipway/internal/record"
)

// writer makes changes, each a single system call or made good by the next
// run. The temporary names of package durable would be taken for keys by the
// readers of this directory, hence names of its own, below "..".
type writer struct {
	root *os.Root
	want map[string]string
	was  *prior // modes and owners to give; nil: those of the kubelet
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

// fill makes the files, writes them and then syncs them: while the first ones
// are waited for, the disk is at work on the others.
func (w writer) fill(ctx context.Context, name string) error {
	d, err := openFolder(w.root, name)
	if err != nil {
		return err
	}
	defer d.Close()
	const atOnce = 256 // files open at the same time
	for keys := range slices.Chunk(slices.Sorted(maps.Keys(w.want)), atOnce) {
		if err := w.writeFiles(ctx, d, keys); err != nil {
			return err
		}
	}
	if w.was != nil {
		if err := w.finish(name); err != nil {
			return err
		}
	}
	return w.sync(name)
}

func (w writer) writeFiles(ctx context.Context, d *folder, keys []string) (err error) {
	files := make([]file, 0, len(keys))
	defer func() {
		for _, f := range files {
			err = errors.Join(err, f.close())
		}
	}()
	for _, key := range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		w.step("write " + key)
		f, err := d.create(key, w.filePerm())
		if err != nil {
			return err
		}
		files = append(files, f)
		if w.was != nil {
			if err := w.own(path.Join(d.name, key), w.was.Files[key]); err != nil {
				return err
			}
		}
	}
	err = spread(len(files), runtime.GOMAXPROCS(0), worthwhile, func(from, to int) error {
		for i := from; i < to; i++ {
			if err := files[i].fill(w.want[keys[i]]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return syncFiles(files)
}

// filePerm is the mode that a file is made with: the one that it keeps, or what
// lets nobody see it until it has its own.
func (w writer) filePerm() fs.FileMode {
	if w.was != nil {
		return 0o600
	}
	return fileMode
}

// syncFiles waits until the disk has all files. The first wait has a journal
// written, which serves them all; each of the others has the disk empty its
// cache, and those that come at the same time share that.
func syncFiles(files []file) error {
	if len(files) == 0 {
		return nil
	}
	const atOnce = 8
	if err := files[0].sync(); err != nil {
		return err
	}
	return spread(len(files), atOnce, 1, func(from, to int) error {
		for _, f := range files[max(from, 1):to] {
			if err := f.sync(); err != nil {
				return err
			}
		}
		return nil
	})
}

// finish gives a data directory what one of ours has not: links among the
// values, an owner and, last, a mode.
func (w writer) finish(dir string) error {
	for name, s := range w.was.Files {
		if s.Type != "symlink" {
			continue
		}
		name = path.Join(dir, name)
		w.step("make link " + name)
		if err := errors.Join(w.root.Symlink(s.Target, name), w.own(name, s)); err != nil {
			return err
		}
	}
	return w.own(dir, w.was.Dir)
}

// own gives name its owner and then its mode, from which a change of owner may
// take bits.
func (w writer) own(name string, s record.State) error {
	if err := chown(w.root, name, s); err != nil || s.Type == "symlink" {
		return err
	}
	return w.root.Chmod(name, filemode.Go(s.Mode))
}

// file puts a file in its place at once, over what is there.
func (w writer) file(name string, s record.State) error {
	temp := tempPrefix + strconv.FormatUint(rand.Uint64(), 10)
	w.step("write " + temp)
	f, err := w.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(s.Content)
	if err = errors.Join(err, w.own(temp, s), f.Sync(), f.Close()); err == nil {
		w.step("rename file to " + name)
		err = w.root.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, w.root.Remove(temp))
	}
	return nil
}

// link puts a link in its place at once, over what is there.
func (w writer) link(target, name string) error {
	w.step("make link " + name)
	if err := w.root.Symlink(target, name); !errors.Is(err, fs.ErrExist) {
		return err
	}
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
		entries, err := list(w.root, name)
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
