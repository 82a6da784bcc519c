// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package record

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// Schema is the version of the format that this package writes.
const Schema = 1

// MaxInline is the size in bytes up to which content is kept in the book.
const MaxInline = 4 << 10

// ErrChanged says that an object is no longer as it was left: it is
// somebody else's by now, and stays.
var ErrChanged = errors.New("no longer as it was left")

// ErrUnreadable says that a book exists and cannot be understood.
var ErrUnreadable = errors.New("unreadable record")

// errBelow says that a directory stays because of what is recorded below it:
// that has been reported already.
var errBelow = errors.New("something below it stays")

// Kinds of entries that this package itself can undo (see [Book.UndoFile]).
const (
	KindFile = "file"
	KindDir  = "dir"
)

// State is what an object was, or is. The zero value is one that is absent.
type State struct {
	Type    string `json:"type,omitempty"` // "", "file", "dir", "symlink", "mount", "value", "other"
	Mode    uint32 `json:"mode,omitempty"` // as in Unix, 0o7777
	UID     int    `json:"uid,omitempty"`
	GID     int    `json:"gid,omitempty"`
	Size    int64  `json:"size,omitempty"`   // of a file, in bytes
	SHA256  string `json:"sha256,omitempty"` // of a file's content, in hex
	Content []byte `json:"content,omitempty"`
	Blob    string `json:"blob,omitempty"`   // the file beside the book that keeps the content
	Target  string `json:"target,omitempty"` // of a symbolic link
	Value   string `json:"value,omitempty"`  // a kernel value; the identity of a mount
}

// Same reports whether two states are the same but for where content is kept.
func (s State) Same(o State) bool {
	return s.Type == o.Type && s.Mode == o.Mode && s.UID == o.UID && s.GID == o.GID &&
		s.Size == o.Size && s.SHA256 == o.SHA256 && s.Target == o.Target && s.Value == o.Value
}

// Entry is one object's page.
type Entry struct {
	Kind   string `json:"kind"`           // "file", "dir", "mount", "sysctl", ...
	Object string `json:"object"`         // a path or key, once in a book
	Before State  `json:"before"`         // kept from the first Begin
	After  State  `json:"after"`          // as it is, or was meant to be, left
	Was    *State `json:"was,omitempty"`  // begun again: as it was left the time before
	Done   bool   `json:"done"`           // false: begun; look at the object
	Boot   string `json:"boot,omitempty"` // the boot that made it, for what a reboot undoes
}

// page is a book on disk.
type page struct {
	Schema     int     `json:"schema"`
	Owner      string  `json:"owner,omitempty"`
	Generation int     `json:"generation,omitempty"`
	Entries    []Entry `json:"entries"`
}

// Book is the record of one package on one node. It is for one goroutine.
type Book struct {
	dir, name string
	page      page
	swept     bool
}

// Open reads the book called name in stateDir. One that does not exist is
// empty; nothing is created before the first Begin.
func Open(stateDir, name string) (*Book, error) {
	if !filepath.IsAbs(stateDir) {
		return nil, fmt.Errorf("state directory %q is not an absolute path", stateDir)
	}
	b := &Book{dir: filepath.Clean(stateDir), name: name, page: page{Schema: Schema}}
	raw, err := os.ReadFile(b.path())
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the record: %w", remedy.File(err))
	}
	if b.page, err = decode(raw); err != nil {
		return nil, fmt.Errorf("%s: %w; nothing is undone by guess: repair the file, or undo by hand and remove it", b.path(), err)
	}
	return b, nil
}

func decode(raw []byte) (page, error) {
	var version struct{ Schema int }
	if err := json.Unmarshal(raw, &version); err != nil {
		return page{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	if version.Schema != Schema {
		return page{}, fmt.Errorf("%w: it has schema %d, and this version reads %d", ErrUnreadable, version.Schema, Schema)
	}
	var p page
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return page{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	seen := map[string]bool{}
	for _, e := range p.Entries {
		if err := e.validate(); err != nil {
			return page{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
		if seen[e.Object] {
			return page{}, fmt.Errorf("%w: %s is there twice", ErrUnreadable, e.Object)
		}
		seen[e.Object] = true
	}
	return p, nil
}

func (e Entry) validate() error {
	switch {
	case e.Kind == "" || e.Object == "":
		return fmt.Errorf("an entry has no kind or no object")
	case (e.Kind == KindFile || e.Kind == KindDir) && (!filepath.IsAbs(e.Object) || filepath.Clean(e.Object) != e.Object):
		return fmt.Errorf("%q is not an absolute, clean path", e.Object)
	case e.Before.Blob != filepath.Base(e.Before.Blob) && e.Before.Blob != "":
		return fmt.Errorf("%s: kept content %q is not a file beside the record", e.Object, e.Before.Blob)
	}
	return nil
}

// Entries lists what is recorded, oldest first.
func (b *Book) Entries() []Entry { return slices.Clone(b.page.Entries) }

// Lookup finds the entry of object.
func (b *Book) Lookup(object string) (Entry, bool) {
	if i := b.index(object); i >= 0 {
		return b.page.Entries[i], true
	}
	return Entry{}, false
}

func (b *Book) index(object string) int {
	return slices.IndexFunc(b.page.Entries, func(e Entry) bool { return e.Object == object })
}

// Begin notes, durably, that entries are about to be changed. An object that
// is in the book keeps its Before; if it was recorded under another boot and
// its kind ends with a boot, it starts anew.
func (b *Book) Begin(entries ...Entry) error {
	for _, e := range entries {
		if err := e.validate(); err != nil {
			return err
		}
		e.Done = false
		i := b.index(e.Object)
		if i < 0 {
			b.page.Entries = append(b.page.Entries, e)
			continue
		}
		b.page.Entries[i] = b.page.Entries[i].again(e)
	}
	return b.save()
}

// again is e begun anew as now.
func (e Entry) again(now Entry) Entry {
	if e.Boot != now.Boot {
		return now
	}
	now.Before, now.Was = e.Before, e.Was
	if e.Done {
		now.Was = &e.After
	}
	return now
}

// Left reports whether now is how e says that its object was left. Before
// completion that is how it was to be left, with mode and owner not reached
// yet, or how it was left the time before.
func (e Entry) Left(now State) bool {
	if e.Done {
		return now.Same(e.After)
	}
	after := e.After
	after.Mode, after.UID, after.GID = now.Mode, now.UID, now.GID
	return now.Same(after) || e.Was != nil && now.Same(*e.Was)
}

// Complete notes, durably, how entries were left: their After, by Object.
func (b *Book) Complete(entries ...Entry) error {
	for _, e := range entries {
		i := b.index(e.Object)
		if i < 0 {
			return fmt.Errorf("record: %s was never begun", e.Object)
		}
		kept := &b.page.Entries[i]
		kept.After, kept.Was, kept.Done = e.After, nil, true
	}
	return b.save()
}

// Forget drops objects, durably. With the last one go the book, its kept
// content and, if nothing else is in it, the state directory.
func (b *Book) Forget(objects ...string) error {
	b.page.Entries = slices.DeleteFunc(b.page.Entries, func(e Entry) bool {
		return slices.Contains(objects, e.Object)
	})
	if len(b.page.Entries) == 0 {
		return b.discard()
	}
	if err := b.save(); err != nil {
		return err
	}
	return b.sweepBlobs()
}

// Undo calls undo for each entry, newest first. Nil: the entry is forgotten.
// An error that matches [ErrChanged]: reported and forgotten. Any other: kept
// for the next time, and reported. The errors are joined.
func (b *Book) Undo(ctx context.Context, undo func(context.Context, Entry) error) error {
	var gone []string
	var errs []error
	for _, e := range slices.Backward(b.Entries()) {
		if err := ctx.Err(); err != nil {
			errs = append(errs, err)
			break
		}
		err := undo(ctx, e)
		if errors.Is(err, errBelow) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
		}
		if err == nil || errors.Is(err, ErrChanged) {
			gone = append(gone, e.Object)
		}
	}
	return errors.Join(append(errs, b.Forget(gone...))...)
}

// Owner names who changed the node last, and how many owners there have been.
// A book without an owner has generation 0.
func (b *Book) Owner() (owner string, generation int) { return b.page.Owner, b.page.Generation }

// SetOwner makes owner the last one, durably; one that is new raises the
// generation.
func (b *Book) SetOwner(owner string) error {
	if b.page.Generation > 0 && b.page.Owner == owner {
		return nil
	}
	b.page.Owner = owner
	b.page.Generation++
	return b.save()
}

func (b *Book) path() string { return filepath.Join(b.dir, b.name+".json") }

func (b *Book) save() error {
	if err := b.makeDir(); err != nil {
		return err
	}
	if !b.swept {
		if err := durable.Sweep(b.dir); err != nil {
			return fmt.Errorf("clear the state directory of what a killed run left: %w", err)
		}
		b.swept = true
	}
	raw, err := json.MarshalIndent(b.page, "", " ")
	if err != nil {
		return fmt.Errorf("encode the record: %w", err)
	}
	if err := durable.WriteFile(b.path(), 0o600, append(raw, '\n')); err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	return nil
}

// makeDir makes the state directory, of which only the last element may be
// missing: what would be made above it could not be recorded.
func (b *Book) makeDir() error {
	err := os.Mkdir(b.dir, durable.StateDirMode)
	switch {
	case err == nil:
		return durable.SyncDir(filepath.Dir(b.dir))
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("make the state directory: %w (create %s, or name another)", err, filepath.Dir(b.dir))
	}
	return fmt.Errorf("make the state directory: %w", remedy.File(err))
}

// discard removes the book with all that belongs to it.
func (b *Book) discard() error {
	b.page = page{Schema: Schema}
	if _, err := os.Lstat(b.dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := durable.Remove(b.path()); err != nil {
		return fmt.Errorf("remove the record: %w", err)
	}
	if err := errors.Join(b.sweepBlobs(), durable.Sweep(b.dir)); err != nil {
		return err
	}
	return b.removeDir()
}

// removeDir removes the state directory if it was made here and nothing is
// left in it.
func (b *Book) removeDir() error {
	info, err := os.Lstat(b.dir)
	if err != nil {
		return fmt.Errorf("look at the state directory: %w", err)
	}
	if info.Mode() == fs.ModeDir|durable.StateDirMode {
		os.Remove(b.dir) // fails, rightly, while anything is in it
	}
	return nil
}
