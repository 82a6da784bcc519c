// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/durable"
)

// writer makes changes, each of which is a single system call or is repaired by the
// next run. Readers of this directory would take the temporary names of package
// durable for keys, so writer uses its own, which start with "..".
type writer struct {
	dir  *durable.Dir // unsynced
	want map[string]string
	step func(string)
}

// write changes the directory to the wanted state. The order ensures that no link
// of a key ever dangles: links of removed keys are removed before the swap, links
// of new keys are made after it.
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
		if err := errors.Join(w.dir.Sync(), w.link(fresh, dataLink), w.dir.Sync()); err != nil {
			return err
		}
		if l.data != "" {
			l.litter = append(l.litter, l.data)
		}
	}
	for _, key := range l.add {
		if err := w.link(linkTo(key), key); err != nil {
			return err
		}
	}
	return errors.Join(w.removeLitter(l.litter), w.dir.Sync())
}

// newData writes a data directory that ..data does not show yet, and syncs it. No other
// run has its name, even within the same second. After a failure, it removes what was
// written.
func (w writer) newData(ctx context.Context) (string, error) {
	name := time.Now().UTC().Format("..2006_01_02_15_04_05.") + strconv.FormatUint(rand.Uint64(), 10)
	w.step("make directory " + name)
	data, err := w.dir.OpenNewDir(name, dirMode)
	if err != nil {
		return "", err
	}
	defer data.Close()
	if err := w.fill(ctx, data.Unsynced()); err != nil {
		return "", errors.Join(err, w.removeData(name))
	}
	return name, nil
}

// syncsAtOnce is how many files are waited for at the same time. Each wait makes
// the disk flush its cache, and simultaneous ones share a flush: 144 files take 27 ms
// instead of 112 (measured on ext4).
const syncsAtOnce = 8

// fill writes the files and syncs them. A directory that already contains something is not
// the one that was made.
func (w writer) fill(ctx context.Context, data *durable.Dir) error {
	if _, err := data.NamesAtMost(0); err != nil {
		return err
	}
	for keys := range slices.Chunk(slices.Sorted(maps.Keys(w.want)), syncsAtOnce) {
		if err := errors.Join(ctx.Err(), w.writeFiles(data, keys)); err != nil {
			return err
		}
	}
	return data.Sync()
}

// writeFiles writes files, and waits until all are on disk. Its goroutines only touch open
// files, since the caller's thread may be in another mount namespace.
func (w writer) writeFiles(data *durable.Dir, keys []string) (err error) {
	errs := make([]error, len(keys))
	var running sync.WaitGroup
	defer func() {
		running.Wait()
		err = errors.Join(append(errs, err)...)
	}()
	for i, key := range keys {
		w.step("write " + key)
		f, err := data.OpenNew(key, fileMode)
		if err != nil {
			return err
		}
		running.Go(func() {
			_, err := f.WriteString(w.want[key])
			errs[i] = errors.Join(err, f.Sync(), f.Close())
		})
	}
	return nil
}

// link atomically puts a link in its place, replacing an existing object.
func (w writer) link(target, name string) error {
	temp := tempPrefix + strconv.FormatUint(rand.Uint64(), 10)
	w.step("make link for " + name)
	if err := w.dir.SymlinkNew(target, temp); err != nil {
		return err
	}
	w.step("rename link to " + name)
	if err := w.dir.Rename(temp, name); err != nil {
		return errors.Join(err, w.dir.Remove(temp))
	}
	return nil
}

func (w writer) removeLinks(names []string) error {
	for _, name := range names {
		w.step("remove link " + name)
		if err := w.dir.Remove(name); err != nil {
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

// removeData removes a link, or a directory with its files. It goes no deeper,
// since a data directory contains no directories.
func (w writer) removeData(name string) error {
	info, err := w.dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.IsDir() {
		err = w.empty(name)
	}
	if err != nil {
		return err
	}
	w.step("remove " + name)
	return w.dir.Remove(name)
}

func (w writer) empty(name string) error {
	data, err := w.dir.OpenDir(name)
	if err != nil {
		return err
	}
	defer data.Close()
	names, err := data.NamesAtMost(maxNames)
	if err != nil {
		return err
	}
	for _, name := range names {
		w.step("remove " + name)
		if err := data.Unsynced().Remove(name); err != nil {
			return fmt.Errorf("remove an old version: %w", err)
		}
	}
	return nil
}
