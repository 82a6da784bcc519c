// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/unsupported"
)

var (
	// ErrChanged says that an object is no longer as it was left: it is somebody
	// else's by now, and stays.
	ErrChanged = errors.New("no longer as it was left")

	// ErrKept says that an object stays because the caller wants it to, and
	// remains recorded.
	ErrKept = errors.New("kept as asked")

	// ErrNotOwner says that the node is somebody else's, so nothing was done.
	ErrNotOwner = errors.New("the node is somebody else's")

	// ErrRevoked says that the node was uninstalled or taken over since this
	// process first applied: its work here has ended.
	ErrRevoked = errors.New("the node is no longer this one's")

	// ErrUnreadable says that a journal exists and cannot be understood.
	ErrUnreadable = errors.New("unreadable journal")

	// ErrUntrusted says that somebody else could have written the journal, so it
	// is not obeyed.
	ErrUntrusted = errors.New("others may have written it")

	// ErrUnknownKind says that no handler of this program can undo an entry.
	ErrUnknownKind = errors.New("recorded by something that this program does not know")
)

var errNoJournal error = unsupported.Error("no journal was given, so nothing was recorded")

// Options say who uses a journal, and how to undo what it holds.
type Options struct {
	// Owner is on whose behalf the node is changed, such as a pod's UID. Empty:
	// nobody in particular, who claims nothing.
	Owner string

	// TakeOver lets an owner who was superseded claim the node again.
	TakeOver bool

	// AnyOwner lets reverts undo what somebody else owns. Make sure that no
	// agent of theirs is running.
	AnyOwner bool

	// Boot names the running boot. Empty: the kernel is asked.
	Boot string

	// Handlers know how to undo the kinds of entries that the program makes. For
	// what lies in other namespaces, wrap them with [In].
	Handlers []Handler
}

// Journal is the memory of what was changed on one node. A nil one remembers
// nothing: what records goes on without, and reverts return an error that
// matches [errors.ErrUnsupported].
type Journal struct {
	*shared
	step string // where the context names none
}

// shared is what all steps of one journal have in common.
type shared struct {
	options Options
	dir     string
	parent  *durable.Dir // nil: there was none
	missing error
	name    string // of the directory in parent
	boot    string

	mu         sync.Mutex
	page       *page
	seen       fs.FileInfo     // the file that page was read from; nil: there was none
	swept      bool            // of what a killed process left
	applied    bool            // this process has applied before
	id         string          // of the journal that it has applied to; empty: there was none
	fresh      map[string]bool // content kept for entries that are not begun yet
	generation int             // that it has claimed; 0: none
}

// Open opens the journal in the directory dir, an absolute path in the calling
// thread's mount namespace. Its last element may be missing, and is made when
// something is recorded; where those above are missing too, recording is an
// error, until it is opened again. Close closes it.
//
// The error matches [ErrUntrusted] where others may write there, and
// [ErrUnreadable] where it cannot be understood.
func Open(dir string, o Options) (*Journal, error) {
	if !filepath.IsAbs(dir) || filepath.Clean(dir) == "/" {
		return nil, fmt.Errorf("state directory %q is not an absolute path below /", dir)
	}
	dir = filepath.Clean(dir)
	parent, err := durable.OpenDir(filepath.Dir(dir))
	var missing error // told when something is to be recorded
	if errors.Is(err, fs.ErrNotExist) {
		missing = fmt.Errorf("state directory %s: %w (create %s, or name another)", dir, err, filepath.Dir(dir))
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("state directory %s: %w", dir, err)
	}
	j := &Journal{shared: &shared{options: o, dir: dir, parent: parent, missing: missing, name: filepath.Base(dir), boot: o.Boot}}
	if j.boot == "" {
		j.boot, err = bootID()
	}
	if err == nil {
		_, err = j.load()
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// Close gives up the open directory. Nothing of the journal changes.
func (j *Journal) Close() error {
	if j == nil || j.parent == nil {
		return nil
	}
	return j.parent.Close()
}

// Dir is the path of the journal's directory.
func (j *Journal) Dir() string {
	if j == nil {
		return ""
	}
	return j.dir
}

// Boot names the running boot (random(4)), for [Entry].Boot. Empty where the
// system does not tell.
func (j *Journal) Boot() string {
	if j == nil {
		return ""
	}
	return j.boot
}

type stepKey struct{}

// WithStep returns a context in which what is recorded and reverted is that of
// the named step. A plan does so for each of its steps.
func (j *Journal) WithStep(ctx context.Context, step string) context.Context {
	return context.WithValue(ctx, stepKey{}, step)
}

// Step returns the same journal for an action that is used without a plan: what
// it records and reverts is that of the named step.
func (j *Journal) Step(name string) *Journal {
	if j == nil {
		return nil
	}
	return &Journal{j.shared, name}
}

func (j *Journal) stepOf(ctx context.Context) (string, error) {
	if step, ok := ctx.Value(stepKey{}).(string); ok && step != "" {
		return step, nil
	}
	if j.step == "" {
		return "", errors.New("no step to record for: run the action in a plan that has the journal, or give it Journal.Step")
	}
	return j.step, nil
}

// Begin notes, durably, that entries are about to be changed. What is recorded
// for the same object and step keeps its Before, unless a reboot has undone it.
func (j *Journal) Begin(ctx context.Context, entries ...Entry) error {
	return j.record(ctx, entries, func(p *page, entries []Entry) error {
		for i := range entries {
			e := &entries[i]
			e.Namespace, e.Time, e.Done = Namespace(), time.Now().UTC().Truncate(time.Second), false
			if current := p.current(); j.options.Owner != "" && current.Name == j.options.Owner {
				e.Generation = current.Generation
			}
			if err := e.validate(); err != nil {
				return err
			}
		}
		p.begin(j.boot, entries...)
		for _, e := range entries {
			delete(j.fresh, e.Before.Blob)
		}
		return nil
	})
}

// Complete notes, durably, how entries were left: their After.
func (j *Journal) Complete(ctx context.Context, entries ...Entry) error {
	return j.record(ctx, entries, func(p *page, entries []Entry) error {
		at := p.positions()
		for _, e := range entries {
			i, begun := at[e.id()]
			if !begun {
				return fmt.Errorf("record %s: it was never begun", e)
			}
			kept := &p.Entries[i]
			kept.After, kept.Was, kept.Done = e.After, nil, true
		}
		return nil
	})
}

// Outlast notes, durably, that what entries record comes back after a reboot:
// from now on none undoes it. All else that is recorded of them stays.
func (j *Journal) Outlast(ctx context.Context, entries ...Entry) error {
	return j.record(ctx, entries, func(p *page, entries []Entry) error {
		at := p.positions()
		for _, e := range entries {
			i, begun := at[e.id()]
			if !begun || j.outlived(p.Entries[i]) {
				return fmt.Errorf("record that %s outlives a reboot: it was never begun in this boot", e)
			}
			p.Entries[i].Boot = ""
		}
		return nil
	})
}

// Forget drops entries, durably, for a change that did not come about.
func (j *Journal) Forget(ctx context.Context, entries ...Entry) error {
	if j == nil || len(entries) == 0 {
		return nil
	}
	err := j.record(ctx, entries, func(p *page, entries []Entry) error {
		p.forget(entries...)
		return nil
	})
	return errors.Join(err, j.tidy())
}

// record changes, durably, what is recorded of entries of the context's step.
func (j *Journal) record(ctx context.Context, entries []Entry, f func(*page, []Entry) error) error {
	if j == nil || len(entries) == 0 {
		return nil
	}
	step, err := j.stepOf(ctx)
	if err != nil {
		return err
	}
	entries = slices.Clone(entries)
	for i := range entries {
		entries[i].Step = step
	}
	return j.change(func(p *page) error { return f(p, entries) })
}

// Namespace names the calling thread's mount namespace, as [Entry].Namespace
// does. Empty where the system does not tell.
func Namespace() string { return mountNamespace() }

// Lookup finds the entry of an object that the context's step has changed. What
// a reboot has undone is not found.
func (j *Journal) Lookup(ctx context.Context, kind, object string) (e Entry, known bool, err error) {
	if j == nil {
		return e, false, nil
	}
	step, err := j.stepOf(ctx)
	if err != nil {
		return e, false, err
	}
	p, err := j.load()
	if err != nil {
		return e, false, err
	}
	i := p.index(Entry{Kind: kind, Object: object, Step: step})
	if i < 0 || j.outlived(p.Entries[i]) {
		return e, false, nil
	}
	return p.Entries[i], true, nil
}

// Recorded lists what the context's step has recorded, oldest first. What a
// reboot has undone is left out.
func (j *Journal) Recorded(ctx context.Context) ([]Entry, error) {
	if j == nil {
		return nil, nil
	}
	step, err := j.stepOf(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := j.Entries()
	return slices.DeleteFunc(entries, func(e Entry) bool { return e.Step != step || j.outlived(e) }), err
}

// Empty reports whether nothing is recorded, the node is nobody's, and no run
// that broke off has left anything in the state directory, nor an empty one that
// it made: so that there is nothing to revert.
func (j *Journal) Empty() (bool, error) {
	if j == nil {
		return true, nil
	}
	p, err := j.load()
	if err != nil || len(p.Entries)+len(p.Owners) > 0 {
		return false, err
	}
	left, err := j.remains()
	return err == nil && !left, err
}

// Entries lists what is recorded, oldest first, of all steps.
func (j *Journal) Entries() ([]Entry, error) {
	if j == nil {
		return nil, nil
	}
	p, err := j.load()
	if err != nil {
		return nil, err
	}
	return slices.Clone(p.Entries), nil
}

// outlived reports whether a reboot has taken away what e records.
func (j *Journal) outlived(e Entry) bool { return e.Boot != "" && e.Boot != j.boot }
