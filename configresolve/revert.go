// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/record"
)

const (
	bookName   = "config"
	kindLayout = "config" // the entry of a directory's layout; its object is the ..data link
)

// applyRecorded notes the directories to be made, what stands in the place of a
// key, and then the layout as a whole, and writes it.
func (w Write) applyRecorded(ctx context.Context) error {
	if w.Config == nil {
		return hint(w.Dir, errNoConfig)
	}
	dir, err := filepath.Abs(w.Dir)
	if err != nil || w.Dir == "" {
		return hint(w.Dir, errors.Join(err, errNoDir))
	}
	want := w.Config.Data()
	l, err := look(ctx, dir, want)
	if err != nil {
		return hint(w.Dir, err)
	}
	book, err := record.Open(w.StateDir, bookName)
	if err != nil {
		return fmt.Errorf("write configuration to %s: %w", w.Dir, err)
	}
	entry, noted := book.Lookup(filepath.Join(dir, dataLink))
	if l.done() && (!noted || entry.Done) {
		return nil
	}
	if err := begin(book, dir, l, want); err != nil {
		return hint(w.Dir, err)
	}
	if _, err := writeDir(ctx, dir, want, func(string) {}); err != nil {
		return err
	}
	return hint(w.Dir, complete(book, dir, want))
}

func begin(book *record.Book, dir string, l *layout, want map[string]string) error {
	if err := book.MkdirAll(dir, dirMode); err != nil {
		return err
	}
	for _, key := range l.add {
		if err := beginKey(book, filepath.Join(dir, key), linkTo(key)); err != nil {
			return err
		}
	}
	for _, key := range l.remove {
		if err := beginKey(book, filepath.Join(dir, key), record.State{}); err != nil {
			return err
		}
	}
	path := filepath.Join(dir, dataLink)
	before, err := record.Snapshot(path)
	if err != nil {
		return err
	}
	return book.Begin(record.Entry{Kind: kindLayout, Object: path, Before: before, After: layoutState(want)})
}

// beginKey keeps what stands in the place of a key's link, if anything does. A
// place that was noted before gets its new outcome.
func beginKey(book *record.Book, path string, after record.State) error {
	if _, noted := book.Lookup(path); !noted {
		if after.Type == "" {
			return nil
		}
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	return book.BeginFile(path, after)
}

func complete(book *record.Book, dir string, want map[string]string) error {
	for _, e := range book.Entries() {
		if e.Kind == record.KindFile && !e.Done {
			if err := book.CompleteFile(e.Object); err != nil {
				return err
			}
		}
	}
	return book.Complete(record.Entry{Object: filepath.Join(dir, dataLink), After: layoutState(want)})
}

func linkTo(key string) record.State {
	return record.State{Type: "symlink", Target: dataLink + "/" + key, UID: os.Geteuid(), GID: os.Getegid()}
}

// layoutState identifies what a layout holds.
func layoutState(values map[string]string) record.State {
	text, _ := json.Marshal(values) // sorted; a map of strings cannot fail
	sum := sha256.Sum256(text)
	return record.State{Type: "other", Value: hex.EncodeToString(sum[:])}
}

// Revert takes away what Applies have noted: the layout, and the directories
// that they made if nothing else is in them; a file that stood in the place of
// a key comes back. A directory whose values are no longer those written is
// left as it is and reported, and so is one that held such a layout before the
// first Apply, since its values are not kept. Dir and Config are not looked at.
func (w Write) Revert(ctx context.Context) error {
	book, err := w.book()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	return book.Undo(ctx, func(ctx context.Context, e record.Entry) error {
		if e.Kind != kindLayout {
			return book.UndoFile(e)
		}
		if err := undoLayout(ctx, book, e); err != nil {
			return fmt.Errorf("remove configuration from %s: %w", filepath.Dir(e.Object), err)
		}
		return nil
	})
}

// CheckRevert says what Revert would take away.
func (w Write) CheckRevert(context.Context) ([]string, error) {
	book, err := w.book()
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, e := range slices.Backward(book.Entries()) {
		switch {
		case e.Kind == kindLayout:
			lines = append(lines, "remove configuration from "+filepath.Dir(e.Object))
		case e.Before.Type == "":
			lines = append(lines, "remove "+e.Object)
		default:
			lines = append(lines, "restore "+e.Object)
		}
	}
	return lines, nil
}

func (w Write) book() (*record.Book, error) {
	if w.StateDir == "" {
		return nil, fmt.Errorf("revert configuration in %s: no state directory: %w", w.Dir, errors.ErrUnsupported)
	}
	book, err := record.Open(w.StateDir, bookName)
	if err != nil {
		return nil, fmt.Errorf("revert configuration in %s: %w", w.Dir, err)
	}
	return book, nil
}

func undoLayout(ctx context.Context, book *record.Book, e record.Entry) error {
	dir := filepath.Dir(e.Object)
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	unlock, err := lockDir(ctx, dir)
	if err != nil {
		return err
	}
	defer unlock()
	l, err := inspect(ctx, root, nil)
	if err != nil {
		return err
	}
	if e.Before.Type != "" {
		return fmt.Errorf("it held another one before, which is not kept, so it is %w", record.ErrChanged)
	}
	if l.data != "" && e.Done && layoutState(l.content).Value != e.After.Value {
		return fmt.Errorf("its values are %w, and stay", record.ErrChanged)
	}
	l.remove = slices.DeleteFunc(l.remove, func(name string) bool {
		_, noted := book.Lookup(filepath.Join(dir, name))
		return noted // put back by its own entry
	})
	return removeLayout(writer{root: root, step: func(string) {}}, l)
}

// removeLayout removes links before what they show.
func removeLayout(w writer, l *layout) error {
	if strings.HasPrefix(l.linkOf[dataLink], "..") {
		l.remove = append(l.remove, dataLink)
	}
	if l.data != "" {
		l.litter = append(l.litter, l.data)
	}
	return errors.Join(w.removeLinks(l.remove), w.removeLitter(l.litter), durable.SyncDir(w.root.Name()))
}
