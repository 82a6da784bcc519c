// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/mountinfo"
	"github.com/slipway-dev/slipway/internal/unsupported"
)

var (
	// ErrChanged means that an object is no longer as the step left it: it now has
	// another owner, and is not touched. Its entry remains recorded as kept.
	ErrChanged = code.New(code.LedgerChanged, "no longer as it was left")

	// ErrKept means that an object was not undone because the caller wants to keep it.
	// Its entry remains recorded.
	ErrKept = errors.New("kept as asked")

	// ErrNeeded means that an object was not undone because something that remains on the
	// node needs it. Its entry remains recorded, so that a later revert undoes it. It
	// matches ErrKept, and is no failure. In a plan, the error's text is advice.
	ErrNeeded error = needed{}

	// ErrNotOwner means that the node has another owner, so nothing was done.
	ErrNotOwner = code.New(code.LedgerNotOwner, "the node has another owner")

	// ErrRevoked means that the node was uninstalled or taken over since this process
	// first applied. The process may no longer change the node.
	ErrRevoked = code.New(code.LedgerRevoked, "the node no longer belongs to this owner")

	// ErrUnreadable means that a journal exists but cannot be decoded.
	ErrUnreadable = code.New(code.LedgerUnreadable, "unreadable journal")

	// ErrConflict means that another agent of the node wants an object to be different.
	ErrConflict = code.New(code.LedgerConflict, "another agent wants it differently")

	// ErrUntrusted means that another user could have written the journal, so nothing in
	// it is undone.
	ErrUntrusted = code.New(code.LedgerUntrusted, "others may have written it")

	// ErrUnknownKind means that no handler of this program can undo an entry.
	ErrUnknownKind = code.New(code.LedgerUnknownKind, "recorded by a package that this program does not know")
)

var errNoJournal error = unsupported.Error("there is no journal, so nothing was recorded")

// DefaultDir is the directory of a [Node] without Dir.
const DefaultDir = "/var/lib/slipway"

// Node configures the record of the changes on one node: its directory, its owner, and
// the handlers that undo the changes. A pointer to it is the Journal of a bootstrap.Plan,
// and nothing is read or written before the plan runs. The plan opens the directory on
// its host, so Dir is a path on the node, not in the container. Programs without a plan
// use [Node.Open].
//
// A Node remembers which journal this process has applied to: use one for all plans of a
// process, and do not use it from two goroutines at once for the first time. Its fields
// must not change after that, since a plan copies them when it opens the journal.
type Node struct {
	// Dir is the directory, an absolute path. If empty, it is DefaultDir.
	Dir string

	// Agent is the name of the agent whose changes are recorded: small letters and
	// digits, with single -, . and _ between them. It is part of the [Mark] of objects.
	// It must not be empty.
	Agent string

	// Owner names the owner on whose behalf the node is changed, such as a pod's UID; it
	// must be UTF-8. NoOwner means that there is no owner: the process then claims
	// nothing, and prevents no other from changing the node. One of them must be set.
	Owner   string
	NoOwner bool

	// TakeOver lets a superseded owner claim the node again.
	TakeOver bool

	// AnyOwner lets reverts undo changes on a node with another owner. Make sure that the
	// owner's agent is not running: see [Journal.OwnerAlive].
	AnyOwner bool

	// AcceptKept suppresses the error for objects that are kept because they are no
	// longer as they were left. Once all else is undone, such entries are dropped, and
	// the journal remembers which objects are left for good: see [Journal.LeftForGood].
	//
	// It includes objects that a handler keeps as asked ([ErrKept]), whether for the sake
	// of a changed object (a plugin that an edited configuration names), or by a field of
	// the handler. It is for a final revert: do not set it together with such a field if
	// those objects are to be undone later. Objects that something else on the node needs
	// ([ErrNeeded]) stay recorded, and a later revert undoes them.
	AcceptKept bool

	// Override makes this agent prevail for objects that other agents of the node want to
	// be different. Without it, they are ErrConflict.
	Override bool

	// Adopt makes the agent adopt objects that its plan names and that already exist
	// exactly as wanted when the agent first claims the node: see [Wish]. It is in effect
	// while the first owner has the node. With NoOwner, each apply counts as the first.
	Adopt bool

	// Remedy is added to the error if the directory is read-only: how to name another one.
	Remedy string

	// Boot names the running boot. If empty, the kernel is asked.
	Boot string

	// Handlers undo the entries. Undoing needs nothing else: it may run in another
	// process that does not know the steps of the plan that made the changes.
	Handlers []Handler

	opened *Journal
}

// Enter calls f in the host's namespaces of the given names, which are those of the files
// in /proc/PID/ns: "mnt", "net", "cgroup". The method Enter of hostns.Host has this type.
type Enter = func(ctx context.Context, namespaces []string, f func(context.Context) error) error

// here is the Enter of a process on the host.
func here(ctx context.Context, _ []string, f func(context.Context) error) error { return f(ctx) }

// Validate returns an error if a field of n is invalid.
func (n *Node) Validate() error {
	if n == nil {
		return errors.New("the journal is a nil *Node")
	}
	dir := n.dir()
	switch {
	case !filepath.IsAbs(dir) || dir == "/":
		return fmt.Errorf("state directory %q is not an absolute path below /", n.Dir)
	case !utf8.ValidString(n.Owner):
		return fmt.Errorf("owner %q is not UTF-8, and a journal holds only UTF-8", n.Owner)
	case n.Owner == "" && !n.NoOwner:
		return fmt.Errorf("state directory %s: no owner is named: set Owner, such as a pod's UID, or NoOwner", dir)
	case n.Owner != "" && n.NoOwner:
		return fmt.Errorf("state directory %s: Owner is %q, and NoOwner is set", dir, n.Owner)
	case n.Agent == "":
		return fmt.Errorf("state directory %s: the agent has no name: set Agent", dir)
	case len(n.Agent) > maxAgent || !isAgentName(n.Agent):
		return fmt.Errorf("agent %q: want at most %d small letters and digits, with single -, . and _ between them", n.Agent, maxAgent)
	}
	if i := slices.Index(n.Handlers, nil); i >= 0 {
		return fmt.Errorf("state directory %s: handler %d of %d is nil", dir, i+1, len(n.Handlers))
	}
	return nil
}

func (n *Node) dir() string { return filepath.Clean(cmp.Or(n.Dir, DefaultDir)) }

// Handles reports whether one of the handlers undoes entries of a kind, and in which
// namespaces.
func (n *Node) Handles(kind string) (namespaces []string, ok bool) {
	for _, h := range n.Handlers {
		if slices.Contains(h.Kinds(), kind) {
			return h.Namespaces(), true
		}
	}
	return nil, false
}

// maxAgent is the length of an agent's name in bytes, such that a mount's source can
// have it.
const maxAgent = 63

// isAgentName reports whether name is words of lower-case letters and digits, with one
// dash, dot or underscore between two.
func isAgentName(name string) bool {
	between := true
	for _, c := range []byte(name) {
		separator := strings.IndexByte("-._", c) >= 0
		if separator && between || !separator && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
		between = separator
	}
	return !between
}

// Journal is the record of what was changed on one node. A nil *Journal records
// nothing: the methods that record then succeed without doing so, and those that
// revert return an error that matches [errors.ErrUnsupported].
type Journal struct {
	*shared
	step  string // of the records; empty: none
	noted *notes // of the step
}

// notes are the messages of one run of a step.
type notes struct {
	recorded atomic.Bool // an entry is recorded for it
	mu       sync.Mutex
	advice   []string
}

// shared is the part of a journal that all steps have in common.
type shared struct {
	options Node
	dir     string
	enter   Enter
	parent  *durable.Dir // nil: there was none
	missing error
	name    string // of the directory in parent
	boot    string
	self    *claimant // this process, if the owner is no pod
	living  *claimant // that of the recorded owner, if it lived when the journal was opened

	contained bool // the process is in another mount namespace than the host's

	toClaim atomic.Bool // a check found something that an apply would record although it changes nothing

	mu         sync.Mutex
	log        *log             // as last read or written; nil: read it anew
	around     neighbours       // other agents
	next       string           // the id of the journal that is made next
	swept      bool             // leftovers of killed processes are removed
	applied    bool             // this process has applied before
	id         string           // of the journal that it has applied to; empty: there was none
	fresh      map[string]int64 // bytes of content kept for entries that are not begun yet
	generation int              // that it has claimed; 0: none
}

// Open opens the journal for a program without a plan, or beside its plan. It enters the
// host's mount namespace to open it, and the namespaces of the handlers to undo. If enter
// is nil, the process is on the host. The directory may be missing: it is then made with
// the first record. If the directories above it are missing too, recording, and entering
// for a check, return an error until the journal is opened again. Close closes it.
//
// The error matches [ErrUntrusted] if others may write to the directory, and
// [ErrUnreadable] if the journal cannot be decoded.
func (n *Node) Open(ctx context.Context, enter Enter) (j *Journal, err error) {
	if err := n.Validate(); err != nil {
		return nil, err
	}
	if enter == nil {
		enter = here
	}
	side := mountinfo.Namespace()
	err = enter(ctx, []string{"mnt"}, func(context.Context) (err error) {
		if j, err = open(*n, enter); err == nil {
			j.contained = side != mountinfo.Namespace()
		}
		return err
	})
	return j, err
}

func open(n Node, enter Enter) (*Journal, error) {
	j, err := reach(n, enter)
	if err != nil {
		return nil, err
	}
	p, err := j.head()
	if err == nil {
		err = j.refuseOlder()
	}
	if err == nil {
		err = j.lookAround()
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	j.lookAtClaimants(p)
	return j, nil
}

// reach opens the directory above the journal's, and reads nothing yet.
func reach(n Node, enter Enter) (*Journal, error) {
	n.opened = nil
	dir := n.dir()
	parent, err := durable.OpenDir(filepath.Dir(dir))
	var missing error // returned when something is to be recorded
	if errors.Is(err, fs.ErrNotExist) {
		missing = fmt.Errorf("state directory %s: %w (create %s, or name another)", dir, err, filepath.Dir(dir))
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("state directory %s: %w", dir, err)
	}
	j := &Journal{shared: &shared{options: n, dir: dir, enter: enter, parent: parent, missing: missing, name: filepath.Base(dir), boot: n.Boot, next: newID()}}
	if j.boot == "" {
		if j.boot, err = bootID(); err != nil {
			return nil, errors.Join(err, j.Close())
		}
	}
	return j, nil
}

// Close closes the open directory. The record does not change.
func (j *Journal) Close() error {
	if j == nil || j.parent == nil {
		return nil
	}
	return j.parent.Close()
}

// Dir returns the path of the journal's directory.
func (j *Journal) Dir() string {
	if j == nil {
		return ""
	}
	return j.dir
}

// Boot returns the id of the running boot (random(4)), for [Entry].Boot. It is
// empty on systems that have none.
func (j *Journal) Boot() string {
	if j == nil {
		return ""
	}
	return j.boot
}

// needed is ErrNeeded.
type needed struct{}

func (needed) Error() string        { return "still needed" }
func (needed) Is(target error) bool { return target == ErrKept }

type journalKey struct{}

// With returns a context in which actions record in j.
func With(ctx context.Context, j *Journal) context.Context {
	return context.WithValue(ctx, journalKey{}, j)
}

// From returns the journal in which an action records its changes. It is nil if there is
// none: the action is used alone, or its step in the plan disables recording.
func From(ctx context.Context) *Journal {
	j, _ := ctx.Value(journalKey{}).(*Journal)
	return j
}

// Step returns the same journal for one step: everything recorded or reverted through it
// belongs to that step. A plan calls it for each of its steps.
func (j *Journal) Step(name string) *Journal {
	if j == nil {
		return nil
	}
	return &Journal{j.shared, name, new(notes)}
}

// of returns j for the step that is recorded or reverted: that of the context's journal,
// if it is the same one, or else j's own.
func (j *Journal) of(ctx context.Context) (*Journal, error) {
	if in := From(ctx); in != nil && in.shared == j.shared && in.step != "" {
		return in, nil
	}
	if j.step == "" {
		return nil, errors.New("no step to record for: run the action in a plan that has the journal, or give it Journal.Step")
	}
	return j, nil
}

// Noted reports whether something is recorded for the context's step, as far as its
// action has recorded or looked up in this run. Package bootstrap calls it.
func (n *Node) Noted(ctx context.Context) bool {
	j := From(ctx)
	return j != nil && j.noted != nil && j.noted.recorded.Load()
}

// Advice returns remarks for an administrator on the objects that the context's step wants.
func (n *Node) Advice(ctx context.Context) []string {
	j := From(ctx)
	if j == nil || j.noted == nil {
		return nil
	}
	j.noted.mu.Lock()
	defer j.noted.mu.Unlock()
	return j.noted.advice
}

func (j *Journal) advise(format string, args ...any) {
	if j.noted == nil {
		return
	}
	j.noted.mu.Lock()
	defer j.noted.mu.Unlock()
	if line := fmt.Sprintf(format, args...); !slices.Contains(j.noted.advice, line) {
		j.noted.advice = append(j.noted.advice, line)
	}
}

func (j *Journal) note() {
	if j.noted != nil {
		j.noted.recorded.Store(true)
	}
}

// Begin records, durably, that the objects of entries are about to be changed. If an
// entry of the same object and step is already recorded, its Before remains, unless a
// reboot has undone the change. If other agents have recorded the object, the original is
// theirs, and if one of them wants it to be different, the error matches [ErrConflict],
// unless [Node].Override is set.
func (j *Journal) Begin(ctx context.Context, entries ...Entry) error {
	if j == nil || len(entries) == 0 {
		return nil
	}
	entries = slices.Clone(entries)
	others, err := j.identify(entries)
	if err != nil {
		return unrecorded{err}
	}
	return j.record(ctx, entries, func(l *log, entries []Entry) error {
		for i := range entries {
			e := &entries[i]
			if err := j.complete(ctx, l, e); err != nil {
				return err
			}
			e.Done = false
			if err := j.negotiate(l, e, others[e.Identity]); err != nil {
				return err
			}
		}
		above, err := j.above(ctx, l, entries, others)
		if err == nil {
			err = l.join(above...)
		}
		if err == nil {
			err = l.begin(j.boot, entries...)
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			delete(j.fresh, e.Before.Blob)
			if e.Over != nil {
				delete(j.fresh, e.Over.Blob)
			}
		}
		return nil
	})
}

// identify sets the identities of entries, and returns the claims of other agents on
// their objects and on the directories above.
func (j *Journal) identify(entries []Entry) (map[string]claims, error) {
	var identities []string
	for i := range entries {
		e := &entries[i]
		e.Identity = cmp.Or(e.Identity, j.identity(*e))
		identities = append(append(identities, e.Identity), e.above()...)
	}
	return j.othersOf(identities...)
}

// identity returns the identity of e's object. An object in the process's container
// belongs to no other agent, even with the same path.
func (j *Journal) identity(e Entry) string {
	if namespaces, handled := j.options.Handles(e.Kind); j.contained && handled && len(namespaces) == 0 {
		return "of agent " + j.options.Agent + ": " + e.identity()
	}
	return e.identity()
}

// complete fills in the fields that the caller of Begin leaves out.
func (j *Journal) complete(ctx context.Context, l *log, e *Entry) error {
	var handled bool
	if e.Namespaces, handled = j.options.Handles(e.Kind); !handled && in(ctx) != nil {
		return fmt.Errorf("record %s: no handler of the journal undoes this kind, and the action has not declared it", e)
	}
	e.Namespace, e.Time = mountinfo.Namespace(), time.Now().UTC().Truncate(time.Second)
	if current := l.current(); j.options.Owner != "" && current.Name == j.options.Owner {
		e.Generation = current.Generation
	}
	return e.validate()
}

// Complete records, durably, the state in which the objects were left: the After of
// the entries.
func (j *Journal) Complete(ctx context.Context, entries ...Entry) error {
	return j.record(ctx, entries, func(l *log, entries []Entry) error {
		for _, e := range entries {
			kept, begun := l.entries.get(e.id())
			if !begun {
				return fmt.Errorf("record %s: it was never begun", e)
			}
			if err := l.put(kept.completed(e.After)); err != nil {
				return err
			}
		}
		return nil
	})
}

// SurvivesReboot records, durably, that the changes of entries return after a reboot, so
// that a reboot no longer counts as undoing them. Nothing else about the entries changes.
func (j *Journal) SurvivesReboot(ctx context.Context, entries ...Entry) error {
	return j.record(ctx, entries, func(l *log, entries []Entry) error {
		for _, e := range entries {
			kept, begun := l.entries.get(e.id())
			if !begun || j.outlived(kept) {
				return fmt.Errorf("record that %s outlives a reboot: it was never begun in this boot", e)
			}
			kept.Boot = ""
			if err := l.put(kept); err != nil {
				return err
			}
		}
		return nil
	})
}

// Forget drops entries, durably. It is for changes that were begun but not made.
func (j *Journal) Forget(ctx context.Context, entries ...Entry) error {
	if j == nil || len(entries) == 0 {
		return nil
	}
	var gone []Entry
	err := j.record(ctx, entries, func(l *log, entries []Entry) error {
		for _, e := range entries {
			if was, known := l.entries.get(e.id()); known {
				gone = append(gone, was)
			}
		}
		return l.forget(gone...)
	})
	return errors.Join(err, j.tidyAfter(gone))
}

// record durably changes entries of the context's step.
func (j *Journal) record(ctx context.Context, entries []Entry, f func(*log, []Entry) error) error {
	if j == nil || len(entries) == 0 {
		return nil
	}
	j, err := j.of(ctx)
	if err != nil {
		return err
	}
	entries = slices.Clone(entries)
	for i := range entries {
		entries[i].Step = j.step
	}
	j.note()
	if err := j.change(func(l *log) error { return f(l, entries) }); err != nil {
		return unrecorded{err}
	}
	return nil
}

// unrecorded tells a plan that no other step can record anything either.
type unrecorded struct{ error }

// EndsPlan makes the error a bootstrap.PlanEnder.
func (unrecorded) EndsPlan() {}

func (e unrecorded) Unwrap() error { return e.error }

// Lookup finds the entry of an object that the context's step has changed. An entry that
// a reboot has undone is not found, nor one that is kept: the present state is the
// original of the next change.
func (j *Journal) Lookup(ctx context.Context, kind, object string) (e Entry, known bool, err error) {
	if j == nil {
		return e, false, nil
	}
	if j, err = j.of(ctx); err != nil {
		return e, false, err
	}
	e, known, err = j.find(id{kind, object, j.step})
	if err != nil || !known || j.passed(e) {
		return Entry{}, false, err
	}
	j.note()
	return e, true, nil
}

// Recorded lists the entries of the context's step, oldest first. Entries that a
// reboot has undone are left out, and those that are kept.
func (j *Journal) Recorded(ctx context.Context) (entries []Entry, err error) {
	if j == nil {
		return nil, nil
	}
	if j, err = j.of(ctx); err != nil {
		return nil, err
	}
	entries, err = j.Entries()
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.Step != j.step || j.passed(e) })
	if len(entries) > 0 {
		j.note()
	}
	return entries, err
}

// Empty reports whether there is nothing to revert: nothing is recorded, the node has no
// owner, no failed run has left only its report, and no interrupted run has left the
// journal's directory or anything in it. Objects left for good do not count.
func (j *Journal) Empty() (bool, error) {
	if j == nil {
		return true, nil
	}
	p, err := j.load()
	if err != nil || len(p.Entries)+len(p.Found)+len(p.Owners) > 0 {
		return false, err
	}
	left, err := j.remains(p)
	return err == nil && !left, err
}

// Entries lists the entries of the changes of all steps, oldest first.
func (j *Journal) Entries() ([]Entry, error) {
	if j == nil {
		return nil, nil
	}
	p, err := j.load()
	if err != nil {
		return nil, err
	}
	return p.Entries, nil
}

// Found lists the entries of objects that steps found as wanted: nothing was changed, and
// nothing is undone. See [Wish].
func (j *Journal) Found() ([]Entry, error) {
	if j == nil {
		return nil, nil
	}
	p, err := j.load()
	if err != nil {
		return nil, err
	}
	return p.Found, nil
}

// LeftForGood lists the objects that ForgetObject, or a revert with [Node].AcceptKept,
// has left in place and dropped from the record, and those that were kept and then
// changed again, since their originals come back. It excludes recorded objects and, of
// more than 1,000, the oldest.
func (j *Journal) LeftForGood() ([]Left, error) {
	if j == nil {
		return nil, nil
	}
	p, err := j.load()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(p.Left), func(l Left) bool { return slices.ContainsFunc(p.Entries, l.is) }), nil
}

// outlived reports whether a reboot has undone the change that e records.
func (j *Journal) outlived(e Entry) bool { return e.Boot != "" && e.Boot != j.boot }

// passed reports whether e's object is no longer in the state that e records or wants, or
// never was the step's.
func (j *Journal) passed(e Entry) bool { return e.Kept || e.Released || e.Found || j.outlived(e) }
