// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/slipway-dev/slipway/internal/record"
)

const (
	bookName   = "config"
	kindLayout = "config" // the entry of a directory's layout; its object is the ..data link
)

// journal is the record of the layout in one directory.
type journal struct {
	book     *record.Book
	stateDir string
	dir      string
	want     map[string]string
}

// applyRecorded notes the directories to be made, what stands in the place of a
// key, and then the layout as a whole, and writes it.
func (w Write) applyRecorded(ctx context.Context, step func(string)) error {
	dir, err := filepath.Abs(w.Dir)
	if err != nil || w.Dir == "" {
		return hint(w.Dir, errors.Join(err, errNoDir))
	}
	task := w.job(dir)
	l, err := task.look(ctx)
	if err != nil {
		return hint(w.Dir, err)
	}
	book, err := record.Open(w.StateDir, bookName)
	if err != nil {
		return fmt.Errorf("write configuration to %s: %w", w.Dir, err)
	}
	j := journal{book, w.StateDir, dir, task.want}
	entry, noted := book.Lookup(j.object())
	if l.done() && (!noted || entry.Done) {
		return nil
	}
	if err := book.MkdirAll(dir, dirMode); err != nil {
		return hint(w.Dir, err)
	}
	task.begin, task.step = j.begin, step
	if _, err := task.run(ctx); err != nil {
		return err
	}
	return hint(w.Dir, j.complete())
}

func (j journal) object() string { return filepath.Join(j.dir, dataLink) }

// begin is called with the directory locked, so that what it notes is what the
// write replaces.
func (j journal) begin(root *os.Root, l *layout) error {
	for _, key := range l.add {
		if err := j.beginKey(key, linkTo(key)); err != nil {
			return err
		}
	}
	for _, key := range l.remove {
		if err := j.beginKey(key, record.State{}); err != nil {
			return err
		}
	}
	boot, err := record.BootOf(j.dir)
	if err != nil {
		return err
	}
	e := record.Entry{Kind: kindLayout, Object: j.object(), After: layoutState(j.want), Boot: boot}
	if old, noted := j.book.Lookup(e.Object); !noted || old.Boot != boot {
		if e.Before, err = j.before(root, l); err != nil {
			return err
		}
	}
	return j.book.Begin(e)
}

func (j journal) before(root *os.Root, l *layout) (record.State, error) {
	was, err := capture(root, l)
	if err == nil {
		err = was.lost(j.dir)
	}
	if err != nil {
		return record.State{}, err
	}
	return was.keep(j.book, j.stateDir)
}

// beginKey keeps what stands in the place of a key's link, if anything but such
// a link does. A place that was noted before gets its new outcome.
func (j journal) beginKey(key string, after record.State) error {
	path := filepath.Join(j.dir, key)
	if _, noted := j.book.Lookup(path); !noted {
		if after.Type == "" {
			return nil
		}
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	return j.book.BeginFile(path, after)
}

// complete notes what was begun, now or by a run that was killed.
func (j journal) complete() error {
	for _, e := range j.book.Entries() {
		if e.Kind == record.KindFile && !e.Done {
			if err := j.book.CompleteFile(e.Object); err != nil {
				return err
			}
		}
	}
	if _, noted := j.book.Lookup(j.object()); !noted {
		return nil // somebody else has written the same meanwhile
	}
	return j.book.Complete(record.Entry{Object: j.object(), After: layoutState(j.want)})
}

func linkTo(key string) record.State {
	return record.State{Type: "symlink", Target: dataLink + "/" + key, UID: os.Geteuid(), GID: os.Getegid()}
}

// layoutState identifies what a layout holds.
func layoutState(values map[string]string) record.State {
	text, _ := json.Marshal(values) // sorted; a map of strings cannot fail
	return record.State{Type: "other", Value: sum(text)}
}
