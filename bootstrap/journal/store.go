// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/remedy"
)

const (
	journalSuffix = ".journal"
	blobPrefix    = "blob."
)

// fileName is the name of the journal's file: each agent has its own.
func (j *Journal) fileName() string { return j.options.Agent + journalSuffix }

// load returns the present content, recorded by this or another process.
func (j *Journal) load() (*page, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	l, err := j.current()
	if err != nil {
		return nil, err
	}
	return l.page(), nil
}

// head is load without the entries, in the same time however many there are.
func (j *Journal) head() (*page, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	l, err := j.current()
	if err != nil {
		return nil, err
	}
	return l.head(), nil
}

// find looks up an entry, in the same time however many entries there are.
func (j *Journal) find(i id) (e Entry, known bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	l, err := j.current()
	if err != nil {
		return Entry{}, false, err
	}
	e, known = l.entries.get(i)
	return e, known, nil
}

// current reads new records.
func (j *Journal) current() (*log, error) {
	d, err := j.openDir()
	if err != nil {
		return nil, err
	}
	if d != nil {
		defer d.Close()
	}
	return j.refresh(d)
}

// openDir opens the state directory, or returns nil if it does not exist.
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

// refresh reads the journal, unless it is unchanged since it was last read or written.
// From a file that has grown, it reads only the new records.
func (j *Journal) refresh(d *durable.Dir) (*log, error) {
	l, err := refreshed(d, j.options.Agent, j.log)
	if err != nil {
		j.log = nil
		return nil, err
	}
	j.log = l
	return l, nil
}

// refreshed returns the present content of an agent's file; was is its previous content.
// If the file is damaged, it returns the content before the damage with the error.
func refreshed(d *durable.Dir, agent string, was *log) (*log, error) {
	var info fs.FileInfo
	err := fs.ErrNotExist
	if d != nil {
		info, err = d.Lstat(agent + journalSuffix)
	}
	seen := was != nil && was.seen != nil
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if was == nil || seen {
			was = newLog(agent)
		}
		return was, nil
	case err != nil:
		return newLog(agent), fmt.Errorf("read the journal: %w", remedy.File(err))
	case info.IsDir():
		return newLog(agent), fmt.Errorf("%s is a directory, in the place of the journal: look at its content, and move it away", d.Path(agent+journalSuffix))
	case seen && os.SameFile(info, was.seen) && info.ModTime().Equal(was.seen.ModTime()) && info.Size() == was.seen.Size():
		return was, was.damage
	}
	if seen && was.damage == nil && os.SameFile(info, was.seen) && info.Size() > was.seen.Size() && was.readFile(d) == nil {
		return was, nil
	}
	l := newLog(agent)
	err = l.readFile(d)
	if errors.Is(err, fs.ErrNotExist) {
		return refreshed(d, agent, nil) // another process has just removed it
	}
	return l, err
}

// readFile changes l by the records that its file has gained since l was read.
func (l *log) readFile(d *durable.Dir) error {
	name := l.header.Agent + journalSuffix
	path := d.Path(name)
	if err := trusted(path, func() (fs.FileInfo, error) { return d.Lstat(name) }); err != nil {
		return err
	}
	f, err := d.Open(name)
	if err != nil {
		return fmt.Errorf("read the journal: %w", remedy.File(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		_, err = f.Seek(l.offset, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("read the journal: %w", err)
	}
	if info.Size() > maxJournal {
		return fmt.Errorf("read the journal: %s: larger than %d bytes", path, maxJournal)
	}
	l.seen = info
	if err := l.read(newLineReader(io.LimitReader(f, maxJournal), l.sum, l.offset)); err != nil {
		l.damage = fmt.Errorf("%s: %w: %w; nothing is undone by guess: %s", path, ErrUnreadable, err, l.afterDamage(err))
	}
	return l.damage
}

// afterDamage describes what helps with a file that was read up to err. A line that is
// whole, and still not understood, was written by another version.
func (l *log) afterDamage(err error) string {
	switch {
	case !errors.Is(err, errGarbled) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return "use the program that wrote it"
	case l.records == 0:
		return "copy the directory, then move the file away, which gives up the undo"
	}
	return fmt.Sprintf("copy the directory, then cut the file after line %d, which gives up the undo of what follows", l.records)
}

// refuseOlder returns an error if the directory has files of an older build.
func (j *Journal) refuseOlder() error {
	d, err := j.openDir()
	if d == nil || err != nil {
		return err
	}
	defer d.Close()
	_, err = d.Lstat(j.fileName())
	none := errors.Is(err, fs.ErrNotExist)
	for name, err := range d.All() {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // an uninstall has just removed it
		case err != nil:
			return fmt.Errorf("look at the state directory: %w", err)
		case name == olderName:
			return fmt.Errorf("%w: %s was recorded by an older build, in another format: uninstall with that build, or undo by hand the changes in the file, and remove it", ErrUnreadable, d.Path(name))
		case none && isOlder(d, name):
			return fmt.Errorf("%w: %s was recorded by a build that kept no journal: uninstall with that build, or undo by hand the changes in the file, and remove it", ErrUnreadable, d.Path(name))
		}
	}
	return nil
}

// olderName is the journal of builds of schema 2: one for all agents.
const olderName = "journal.json"

// isOlder reports whether a file is a record of builds of schema 1: one for each package.
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

// change changes the journal, durably. Its running time does not depend on the size of
// the record.
func (j *Journal) change(f func(*log) error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	d, made, err := j.makeDir()
	if err != nil {
		return err
	}
	defer d.Close()
	l, err := j.refresh(d)
	if err == nil {
		err = f(l)
	}
	if err == nil {
		err = j.save(d, l)
	}
	if err != nil && l != nil && len(l.pending) > 0 {
		j.log = nil // it has changed in memory only: read it again
	}
	if made && (err != nil || l.seen == nil) {
		return errors.Join(err, j.parent.Remove(j.name)) // it has no file that names its owner
	}
	return err
}

// save makes changes durable: by one append or, if that would leave too many obsolete
// records, or other parts of the file have changed, by another file.
func (j *Journal) save(d *durable.Dir, l *log) error {
	if len(l.pending) == 0 && !l.rewrite {
		return nil
	}
	if err := j.sweep(d); err != nil {
		return err
	}
	if l.header.ID == "" && l.current().Generation+l.entries.len() > 0 {
		l.header.ID, l.rewrite = j.next, true
	}
	must := l.rewrite || l.seen == nil || l.seen.Size() != l.offset
	alone, err := j.alone(d, l)
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	defer alone()
	if must || l.wasteful() {
		if err = j.replace(d, l); err == nil || must {
			return err
		}
	}
	if errAppend := j.append(d, l); errAppend != nil {
		return errors.Join(err, errAppend)
	}
	return nil // a file that could not be replaced has grown, which does no harm
}

// alone returns an error if another process has written the file since it was read, or is
// writing it: processes that change a node hold its lock, so none should. Until done is
// called, no other process gets this far.
func (j *Journal) alone(d *durable.Dir, l *log) (done func(), err error) {
	if l.seen == nil {
		return func() {}, nil
	}
	path := d.Path(j.fileName())
	f, err := d.OpenAppend(j.fileName())
	if err != nil {
		return nil, remedy.File(err)
	}
	if err = trusted(path, f.Stat); err == nil {
		var named, open fs.FileInfo
		free := flock(f)
		if named, err = d.Lstat(j.fileName()); err == nil {
			open, err = f.Stat()
		}
		if err == nil && (!free || !os.SameFile(named, open) || !os.SameFile(open, l.seen) || open.Size() != l.seen.Size()) {
			err = fmt.Errorf("%s: another process has changed it meanwhile: a process that changes a node must hold the node's lock", path)
		}
	}
	done = func() {
		funlock(f)
		_ = f.Close() // nothing was written through it
	}
	if err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// replace writes all of l to another file, and puts it in the place of the journal.
func (j *Journal) replace(d *durable.Dir, l *log) error {
	f, err := d.Create(j.fileName(), 0o600)
	if err != nil {
		return fmt.Errorf("write the journal: %w", remedy.File(err))
	}
	defer f.Abort()
	w, records := newLineWriter(f, ""), 0
	for e, v := range l.all {
		if err = w.encode(e, v); err != nil {
			break
		}
		records++
	}
	if err == nil {
		err = w.w.Flush()
	}
	if err == nil {
		err = f.Commit()
	}
	if err != nil {
		return fmt.Errorf("write the journal: %w", remedy.File(err))
	}
	info, err := d.Lstat(j.fileName())
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	l.written(info, w, records)
	l.live = w.n
	return nil
}

// append writes the pending records to the end of the file. If that fails, it restores
// the file: otherwise its remainder is a change that was reported to no caller.
func (j *Journal) append(d *durable.Dir, l *log) error {
	f, err := d.OpenAppend(j.fileName())
	if err != nil {
		return fmt.Errorf("write the journal: %w", remedy.File(err))
	}
	defer f.Close()
	var info fs.FileInfo
	w := newLineWriter(f, l.sum)
	w.n = l.offset
	if err = w.appendAll(l.pending); err == nil {
		err = f.Sync()
	}
	if err == nil {
		info, err = f.Stat()
	}
	if err != nil {
		var named *fs.PathError
		if errors.As(err, &named) {
			named.Path = d.Path(j.fileName()) // up to Go 1.25, the name within the directory
		}
		err = errors.Join(err, f.Truncate(l.offset))
		return fmt.Errorf("write the journal: %w", remedy.File(err))
	}
	l.written(info, w, l.records+len(l.pending))
	return nil
}

// written records that all of l is in the file.
func (l *log) written(info fs.FileInfo, w *lineWriter, records int) {
	l.seen, l.offset, l.sum, l.records = info, w.n, w.sum, records
	l.pending, l.rewrite = nil, false
}

func (w *lineWriter) encode(e envelope, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.write(line{e, body}.text())
}

// appendAll writes the records of one change.
func (w *lineWriter) appendAll(lines []line) error {
	for i, l := range lines {
		l.More = i < len(lines)-1
		if err := w.write(l.text()); err != nil {
			return err
		}
	}
	return w.w.Flush()
}

// sweep removes, once, leftovers of a killed run.
func (j *Journal) sweep(d *durable.Dir) error {
	if j.swept && j.log != nil && j.log.seen != nil {
		return nil
	}
	if err := d.Sweep(); err != nil {
		return fmt.Errorf("remove leftovers of a killed run from the state directory: %w", err)
	}
	j.swept = true
	return nil
}

// clear is sweep, for a caller who does not change the journal.
func (j *Journal) clear() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.swept = false // others may have been killed since
	d, err := j.openDir()
	if d == nil || err != nil {
		return err
	}
	defer d.Close()
	return j.sweep(d)
}

// remains reports whether discard has anything to remove, besides the objects in p that
// are left for good.
func (j *Journal) remains(p *page) (bool, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	d, err := j.openDir()
	if d == nil || err != nil {
		return false, err
	}
	defer d.Close()
	info, err := d.Stat()
	if err != nil {
		return false, fmt.Errorf("look at the state directory: %w", err)
	}
	empty, recorded, reported := true, false, false
	for name, err := range d.All() {
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil // an uninstall has just removed it
		}
		if err != nil {
			return false, fmt.Errorf("look at the state directory: %w", err)
		}
		if name == j.fileName() && len(p.Left) == 0 && p.ID != "" || isBlob(name) && !j.around.names(d, name) || durable.IsTemporary(name) {
			return true, nil
		}
		empty, recorded, reported = false, recorded || name == j.fileName(), reported || name == j.reportName()
	}
	return empty && madeHere(info) || reported && !recorded, nil
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

// tidy removes stored content that no entry names or, if nothing is recorded and the node
// has no owner, the whole journal.
func (j *Journal) tidy() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	d, err := j.openDir()
	if d == nil || err != nil {
		return err
	}
	defer d.Close()
	l, err := j.refresh(d)
	if err != nil {
		return err
	}
	if l.entries.wanted()+len(l.owners)+len(j.fresh) == 0 {
		return j.discard()
	}
	if err := j.lookAroundIn(d); err != nil {
		return err
	}
	return j.sweepBlobs(d, l)
}

// tidyAfter is tidy after entries were forgotten, and looks at nothing else.
func (j *Journal) tidyAfter(gone []Entry) error {
	if j.leavesNothing(gone) {
		return nil
	}
	return j.tidy()
}

// leavesNothing reports whether tidy has nothing to remove after entries were forgotten.
func (j *Journal) leavesNothing(gone []Entry) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.log == nil || j.log.entries.wanted()+len(j.log.owners)+len(j.fresh) == 0 {
		return false
	}
	return !slices.ContainsFunc(gone, func(e Entry) bool {
		return e.Before.Blob != "" && j.log.entries.content[e.Before.Blob].entries == 0
	})
}

// discard removes the journal with everything that belongs to it, and the directory if a
// journal made it and it is otherwise empty. Objects left for good are remembered in a
// journal without an owner.
func (j *Journal) discard() error {
	d, err := j.openDir()
	if d == nil || err != nil {
		return err
	}
	defer d.Close()
	l, err := j.refresh(d)
	if err == nil {
		err = j.lookAroundIn(d)
	}
	if err != nil {
		return err
	}
	ownerless := newLog(j.options.Agent)
	if !j.around.read(d) || j.around.need(l, j.boot) {
		ownerless.entries = l.entries // which are released
	}
	j.fresh = nil
	j.applied, j.id, j.generation, j.next = false, "", 0, newID()
	if len(l.left)+ownerless.entries.len() > 0 {
		if l.header.ID != "" || ownerless.entries.len() < l.entries.len() {
			ownerless.left, ownerless.others, ownerless.header.unknown = l.left, l.others, l.header.unknown
			err = j.replace(d, ownerless)
			j.log = ownerless
		}
		return errors.Join(err, j.leaveVoid(d), j.sweepBlobs(d, ownerless))
	}
	j.log = ownerless
	// The report is removed first: as long as it remains, so does the journal that
	// accounts for it.
	if err := errors.Join(d.Remove(j.reportName()), j.leaveVoid(d), j.sweepBlobs(d, ownerless), d.Sweep(), d.Remove(j.fileName())); err != nil {
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
func (j *Journal) sweepBlobs(d *durable.Dir, l *log) error {
	var errs []error
	for name, err := range d.All() {
		if err != nil {
			return errors.Join(append(errs, fmt.Errorf("list the state directory: %w", err))...)
		}
		if _, fresh := j.fresh[name]; isBlob(name) && !fresh && l.entries.content[name].entries == 0 && !j.around.names(d, name) {
			errs = append(errs, d.Remove(name))
		}
	}
	return errors.Join(errs...)
}

// isBlob reports whether a file has kept content: its name has a hash.
func isBlob(name string) bool {
	sum, ok := strings.CutPrefix(name, blobPrefix)
	return ok && sum != "" && isHex(sum)
}
