// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/remedy"
)

const (
	fileName   = "journal.json"
	blobPrefix = "blob."
	maxJournal = 64 << 20 // bytes
)

// load returns what is recorded now, by this or another process.
func (j *Journal) load() (*page, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	d, err := j.openDir()
	if err != nil {
		return nil, err
	}
	if d != nil {
		defer d.Close()
	}
	return j.refresh(d)
}

// openDir opens the state directory, or returns nil if there is none.
func (j *Journal) openDir() (*durable.Dir, error) {
	if j.parent == nil {
		return nil, nil
	}
	d, err := j.parent.OpenDir(j.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", remedy.File(err))
	}
	if err := trusted(d.Path(), d.Stat); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// refresh reads the journal, unless it is unchanged since it was last read.
func (j *Journal) refresh(d *durable.Dir) (*page, error) {
	var info fs.FileInfo
	err := fs.ErrNotExist
	if d != nil {
		info, err = d.Lstat(fileName)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		j.page, j.seen = &page{Schema: schema}, nil
		return j.page, nil
	case err != nil:
		return nil, fmt.Errorf("read the journal: %w", remedy.File(err))
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory, in the place of the journal: look at what it holds, and move it away", d.Path(fileName))
	case j.seen != nil && os.SameFile(info, j.seen) && info.ModTime().Equal(j.seen.ModTime()) && info.Size() == j.seen.Size():
		return j.page, nil
	}
	p, err := read(d)
	if errors.Is(err, fs.ErrNotExist) {
		return j.refresh(d) // another process has just removed it
	}
	if err != nil {
		return nil, err
	}
	j.page, j.seen = p, info
	return p, nil
}

func read(d *durable.Dir) (*page, error) {
	path := d.Path(fileName)
	if err := trusted(path, func() (fs.FileInfo, error) { return d.Lstat(fileName) }); err != nil {
		return nil, err
	}
	raw, err := d.ReadFile(fileName, maxJournal)
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", remedy.File(err))
	}
	p, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; nothing is undone by guess: repair the file, or undo by hand and remove it", path, err)
	}
	return p, nil
}

// refuseOlder returns an error if the directory has no journal but what builds kept
// there that had none: a record for each package, schema 1.
func (j *Journal) refuseOlder() error {
	d, err := j.openDir()
	if d == nil || err != nil {
		return err
	}
	defer d.Close()
	if _, err := d.Lstat(fileName); !errors.Is(err, fs.ErrNotExist) {
		return nil // it was read
	}
	for name, err := range d.All() {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // an uninstall has just removed it
		}
		if err != nil {
			return fmt.Errorf("look at the state directory: %w", err)
		}
		if isOlder(d, name) {
			return fmt.Errorf("%w: %s was recorded by a build that kept no journal: uninstall with that build, or undo by hand what the file says, and remove it", ErrUnreadable, d.Path(name))
		}
	}
	return nil
}

// isOlder reports whether a file is such a record.
func isOlder(d *durable.Dir, name string) bool {
	switch name {
	case "owner.json", "bpffs.json", "cgroup.json", "cni.json", "config.json", "hostpath.json":
	default:
		if !strings.HasPrefix(name, "sysctl") || !strings.HasSuffix(name, ".json") {
			return false
		}
	}
	var p struct {
		Schema  int
		Entries json.RawMessage
	}
	raw, err := d.ReadFile(name, maxJournal)
	return err == nil && json.Unmarshal(raw, &p) == nil && p.Schema == 1 && p.Entries != nil
}

// change changes the journal, durably.
func (j *Journal) change(f func(*page) error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	d, made, err := j.makeDir()
	if err != nil {
		return err
	}
	defer d.Close()
	p, err := j.refresh(d)
	if err == nil {
		p = p.clone()
		p.ID = cmp.Or(p.ID, j.next)
		err = f(p)
	}
	if err == nil {
		err = j.save(d, p)
	}
	if err != nil && made {
		return errors.Join(err, j.parent.Remove(j.name)) // nothing is in it that would say whose it is
	}
	return err
}

// save replaces the journal.
func (j *Journal) save(d *durable.Dir, p *page) error {
	if err := j.sweep(d); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return fmt.Errorf("encode the journal: %w", err)
	}
	if len(raw) >= maxJournal {
		return fmt.Errorf("write the journal: it would have %d bytes, and at most %d are read", len(raw), maxJournal)
	}
	if err := d.WriteFile(fileName, 0o600, append(raw, '\n')); err != nil {
		return fmt.Errorf("write the journal: %w", remedy.File(err))
	}
	info, err := d.Lstat(fileName)
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	j.page, j.seen = p, info
	return nil
}

// sweep removes, once, what a killed run has left.
func (j *Journal) sweep(d *durable.Dir) error {
	if j.swept && j.seen != nil {
		return nil
	}
	if err := d.Sweep(); err != nil {
		return fmt.Errorf("clear the state directory of what a killed run left: %w", err)
	}
	j.swept = true
	return nil
}

// clear is sweep, for a caller who does not change the journal.
func (j *Journal) clear() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	d, err := j.openDir()
	if d == nil || err != nil {
		return err
	}
	defer d.Close()
	return j.sweep(d)
}

// remains reports whether there is something for discard to remove, beside what p
// says that is left for good.
func (j *Journal) remains(p *page) (bool, error) {
	d, err := j.openDir()
	if d == nil || err != nil {
		return false, err
	}
	defer d.Close()
	info, err := d.Stat()
	if err != nil {
		return false, fmt.Errorf("look at the state directory: %w", err)
	}
	empty := true
	for name, err := range d.All() {
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil // an uninstall has just removed it
		}
		if err != nil {
			return false, fmt.Errorf("look at the state directory: %w", err)
		}
		if name == fileName && len(p.Left) == 0 || isBlob(name) || durable.IsTemporary(name) {
			return true, nil
		}
		empty = false
	}
	return empty && madeHere(info), nil
}

// madeHere reports whether the state directory was made by a journal.
func madeHere(info fs.FileInfo) bool { return info.Mode() == fs.ModeDir|durable.StateDirMode }

// makeDir opens the state directory, and makes it if it is missing.
func (j *Journal) makeDir() (d *durable.Dir, made bool, err error) {
	if d, err = j.openDir(); d != nil || err != nil {
		return d, false, err
	}
	if j.parent == nil {
		return nil, false, j.missing
	}
	err = j.parent.Mkdir(j.name, durable.StateDirMode)
	if made = err == nil; err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, false, fmt.Errorf("make the state directory: %w", remedy.File(err))
	}
	d, err = j.openDir()
	if d == nil && err == nil {
		err = fmt.Errorf("make the state directory: %s was removed meanwhile", j.Dir())
	}
	if err != nil && made {
		err = errors.Join(err, j.parent.Remove(j.name))
	}
	return d, made, err
}

// tidy removes stored content that no entry names or, if nothing is recorded and
// nobody owns the node, the whole journal.
func (j *Journal) tidy() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	d, err := j.openDir()
	if d == nil || err != nil {
		return err
	}
	defer d.Close()
	p, err := j.refresh(d)
	if err != nil {
		return err
	}
	if len(p.Entries)+len(p.Owners)+len(j.fresh) == 0 {
		return j.discard()
	}
	return j.sweepBlobs(d, p)
}

// discard removes the journal with everything that belongs to it, and the directory
// if a journal made it and nothing else is in it. What is left for good is remembered
// in a journal of nobody's.
func (j *Journal) discard() error {
	d, err := j.openDir()
	if d == nil || err != nil {
		return err
	}
	defer d.Close()
	p, err := j.refresh(d)
	if err != nil {
		return err
	}
	j.page, j.seen, j.fresh = &page{Schema: schema}, nil, nil
	j.applied, j.id, j.generation, j.next = false, "", 0, newID()
	if len(p.Left) > 0 {
		if p.ID != "" {
			err = j.save(d, &page{Schema: schema, Entries: []Entry{}, Left: p.Left})
		}
		return errors.Join(err, j.sweepBlobs(d, j.page))
	}
	if err := errors.Join(j.sweepBlobs(d, j.page), d.Sweep(), d.Remove(fileName)); err != nil {
		return fmt.Errorf("remove the journal: %w", remedy.File(err))
	}
	info, err := d.Stat()
	if err != nil {
		return err
	}
	if !madeHere(info) {
		return nil
	}
	for _, err := range d.All() {
		return err // nil: it holds something
	}
	if err := j.parent.Remove(j.name); !errors.Is(err, syscall.ENOTEMPTY) { // else the next one is in it already
		return err
	}
	return nil
}

// sweepBlobs removes stored content that is named neither by an entry nor by one
// that is about to be begun.
func (j *Journal) sweepBlobs(d *durable.Dir, p *page) error {
	named := map[string]bool{}
	for _, e := range p.Entries {
		named[e.Before.Blob] = true
	}
	var errs []error
	for name, err := range d.All() {
		if err != nil {
			return errors.Join(append(errs, fmt.Errorf("list the state directory: %w", err))...)
		}
		if isBlob(name) && !j.fresh[name] && !named[name] {
			errs = append(errs, d.Remove(name))
		}
	}
	return errors.Join(errs...)
}

func isBlob(name string) bool {
	sum, ok := strings.CutPrefix(name, blobPrefix)
	return ok && !strings.ContainsAny(sum, "/\\.\x00")
}
