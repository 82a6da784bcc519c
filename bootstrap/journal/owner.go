// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/internal/remedy"
)

// The operations of plans, as package bootstrap names them.
const (
	opVerify      = "verify"
	opCheck       = "check"
	opApply       = "apply"
	opCheckRevert = "check-revert"
	opRevert      = "revert"
)

// Enter opens the journal, if this is the first time, and enters it, for a plan: see
// [Journal.Enter].
func (n *Node) Enter(ctx context.Context, op string, host Enter) (inside context.Context, leave func() error, err error) {
	if n.opened == nil || n.opened.parent == nil {
		if n.opened, err = n.Open(ctx, host); err != nil {
			return nil, nil, err
		}
	}
	return n.opened.Enter(ctx, op)
}

// Enter returns an error unless this process may do op on the node: one of the
// operations of a plan (bootstrap.Op), or "verify".
//
//	apply         claims the node for the owner, the first time
//	check         fails where apply would, and changes nothing
//	revert        must be the owner
//	check-revert  fails where revert would, and changes nothing
//	verify        fails unless the owner still has the node
//
// The caller must hold the node's lock, which excludes other processes, until it calls
// leave: a plan takes it for apply and revert. A plan enters the journal before its first
// step and leaves it after its last; its steps get the context that Enter returns.
//
// The error matches [ErrNotOwner] if the node has another owner, and [ErrRevoked] if this
// process had the node and no longer has it.
func (j *Journal) Enter(ctx context.Context, op string) (inside context.Context, leave func() error, err error) {
	if j == nil {
		return ctx, nothing, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if err := j.lookAround(); err != nil {
		return nil, nil, err
	}
	inside, leave = context.WithValue(ctx, enteredKey{}, entered{j, op}), nothing
	switch op {
	case opApply:
		leave = j.remember
		j.toClaim.Store(false)
		if err = j.claim(); err == nil {
			err = j.clear()
		}
	case opRevert:
		leave = j.endRevert
		err = j.mayRevert(inside)
	case opVerify:
		err = j.verify()
	case opCheck:
		err = j.mayApply()
	case opCheckRevert:
		err = j.mayRevert(inside)
	default:
		err = fmt.Errorf("enter the journal: unknown operation %q", op)
	}
	if err != nil {
		return nil, nil, err
	}
	return inside, leave, nil
}

// Verify returns the error that entering for "verify" would return: for code that runs
// beside a plan, such as a guard, before each change.
func (j *Journal) Verify(ctx context.Context) error {
	_, _, err := j.Enter(ctx, opVerify)
	return err
}

// enteredKey is the context key of the journal that was entered, and of the operation.
type enteredKey struct{}

type entered struct {
	journal *Journal
	op      string
}

func (j *Journal) entered(ctx context.Context) string {
	if in, _ := ctx.Value(enteredKey{}).(entered); in.journal != nil && in.journal.shared == j.shared {
		return in.op
	}
	return ""
}

// in returns the journal that a plan has entered, or nil.
func in(ctx context.Context) *Journal {
	e, _ := ctx.Value(enteredKey{}).(entered)
	return e.journal
}

// OnNode returns the journal for looking up what is recorded on the node: the one that a
// plan has entered, even for a step that records nothing, or that of [With]. It is nil if
// there is none.
func OnNode(ctx context.Context) *Journal {
	if j := in(ctx); j != nil {
		return j
	}
	return From(ctx)
}

// WithStep returns a context in which actions record, or revert, for the named step
// in the journal that was entered.
func (n *Node) WithStep(ctx context.Context, step string) context.Context {
	return With(ctx, in(ctx).Step(step))
}

// Claims reports whether an apply that has nothing to change would still claim the node
// (see [Journal.Claims]), or clean up after an interrupted run in the journal's
// directory. If not, this process counts as having applied.
func (n *Node) Claims(ctx context.Context) (bool, error) {
	j := in(ctx)
	claims, err := j.Claims()
	if err == nil && !claims {
		claims, err = j.cutShort()
	}
	if j == nil || claims || err != nil || j.hasApplied() {
		return claims, err
	}
	p, err := j.head()
	if err != nil {
		return false, err
	}
	if who := j.options.Owner; who != "" && who != p.current().Name {
		return true, nil // another has come meanwhile: the decision is made under the lock
	}
	j.bind(p)
	return false, nil
}

// Wishes reports whether the checks since the last apply found objects that are as
// wanted, or no longer wanted so, and not recorded as that.
func (n *Node) Wishes(ctx context.Context) bool {
	j := in(ctx)
	return j != nil && j.toClaim.Load()
}

// Identity returns the identity under which the journal was entered: the agent, the owner
// (empty: none), and the generation that it has claimed (0: none).
func (n *Node) Identity(ctx context.Context) (agent, owner string, generation int) {
	if j := in(ctx); j != nil {
		j.mu.Lock()
		generation = j.generation
		j.mu.Unlock()
	}
	return n.Agent, n.Owner, generation
}

// Revert undoes the entries of the context's step: see [Journal.Revert]. Errors that
// match [ErrNeeded] are in a bootstrap.AdvisingError.
func (n *Node) Revert(ctx context.Context) error {
	j := From(ctx)
	done, err := j.undoStep(ctx, j.handlers(), all, true)
	return advised(failures(done, err), done)
}

// CheckRevert lists the changes that Revert would make.
func (n *Node) CheckRevert(ctx context.Context) ([]string, error) {
	j := From(ctx)
	would, err := j.undoStep(ctx, j.handlers(), all, false)
	return changes(would), advised(failures(would, err), would)
}

// RevertAll undoes everything or, in a dry run, lists the changes that it would make: see
// [Journal.RevertAll]. It reports each entry; the error covers failures that concern no
// entry.
func (n *Node) RevertAll(ctx context.Context, dryRun bool, report func(step, change string, err error)) error {
	j := in(ctx)
	if j == nil {
		return errNoJournal
	}
	if op := j.entered(ctx); op != opRevert && !dryRun {
		return inUse(j, op)
	}
	undone, err := j.undo(ctx, j.options.Handlers, !dryRun, all)
	for _, u := range undone {
		failure := u.Err
		if !u.IsFailure() {
			failure = advised(nil, []Undone{u})
		}
		change := u.Change
		if u.Err != nil {
			change = ""
		}
		report(u.Entry.Step, change, failure)
	}
	return err
}

// SaveReport keeps a plan's report: see [Journal.SaveReport].
func (n *Node) SaveReport(ctx context.Context, report []byte) error {
	j := in(ctx)
	return j.saveReport(report, j.entered(ctx) != opRevert)
}

func nothing() error { return nil }

// remember remembers which journal this process has applied to.
func (j *Journal) remember() error {
	p, err := j.head()
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.id == "" {
		j.id = p.ID
	}
	return nil
}

// endRevert removes a journal that has no entries any more, and its owners with it.
func (j *Journal) endRevert() error {
	p, err := j.load()
	if err != nil || len(p.Entries)+len(p.Found) > 0 {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.discard()
}

// claim gives the node to the owner, unless that owner was superseded.
func (j *Journal) claim() error {
	p, err := j.head()
	switch {
	case err != nil:
		return err
	case j.hasApplied():
		return j.revoked(p)
	}
	return j.claimFirst(p)
}

func (j *Journal) claimFirst(p *page) error {
	if err := j.claimable(p); err != nil {
		return err
	}
	if who := j.options.Owner; who != "" && (who != p.current().Name || j.claimedByAnother(p.current())) {
		if err := j.change(func(l *log) error { return l.claim(who, j.claimant(l.current())) }); err != nil {
			return err
		}
	}
	p, err := j.head()
	if err != nil {
		return err
	}
	j.bind(p)
	return nil
}

// claimable returns an error if the owner was superseded.
func (j *Journal) claimable(p *page) error {
	who, current := j.options.Owner, p.current()
	if who == "" || who == current.Name || j.options.TakeOver || !p.superseded(who) {
		return nil
	}
	return fmt.Errorf("%w: %s, after %q; nothing is changed (take it over explicitly if that is meant)", ErrNotOwner, current, who)
}

// Claims reports whether an apply would give the node a new owner, or record another
// process for the same one: see [Journal.OwnerAlive].
func (j *Journal) Claims() (bool, error) {
	if j == nil || j.options.Owner == "" {
		return false, nil
	}
	p, err := j.head()
	if err != nil {
		return false, err
	}
	current := p.current()
	return current.Name != j.options.Owner || !j.hasApplied() && j.claimedByAnother(current), nil
}

// mayApply returns the error that an apply would get.
func (j *Journal) mayApply() error {
	p, err := j.head()
	switch {
	case err != nil:
		return err
	case j.missing != nil:
		return j.missing
	}
	if err := j.recordable(); err != nil {
		return err
	}
	if j.hasApplied() {
		return j.revoked(p)
	}
	return j.claimable(p)
}

// recordable returns an error if the state directory, or the one that it would be made in,
// is read-only. Both are looked at through open directories: this process may be in a
// container, and they on the host.
func (j *Journal) recordable() error {
	d, err := j.openDir()
	if err != nil {
		return err
	}
	in := j.parent
	if d != nil {
		defer d.Close()
		in = d
	}
	if in != nil && in.ReadOnly() {
		return fmt.Errorf("state directory %s: %w%s", j.dir, remedy.File(syscall.EROFS), j.options.Remedy)
	}
	return nil
}

// bind remembers which journal and generation this process has applied to.
func (j *Journal) bind(p *page) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.applied, j.id, j.generation = true, p.ID, p.current().Generation
}

func (j *Journal) hasApplied() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.applied
}

// verify returns an error if the node does not belong to the owner.
func (j *Journal) verify() error {
	p, err := j.head()
	if err != nil {
		return err
	}
	if j.hasApplied() {
		return j.revoked(p)
	}
	if err := j.allowed(p); err != nil {
		return err
	}
	if p.current().Generation > 0 { // otherwise its owner may still come
		j.bind(p)
	}
	return nil
}

// revoked returns the reason why a process that has applied before may not apply again.
func (j *Journal) revoked(p *page) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch current := p.current(); {
	case j.id != "" && p.ID == "":
		return fmt.Errorf("%w: it was uninstalled, and %s is gone", ErrRevoked, j.Dir())
	case j.id != "" && p.ID != j.id && current.Generation == 0:
		return fmt.Errorf("%w: it was uninstalled, and others have applied since", ErrRevoked)
	case j.id != "" && p.ID != j.id, current.Generation != j.generation:
		return fmt.Errorf("%w: %w: %s; nothing is changed", ErrRevoked, ErrNotOwner, current)
	}
	return nil
}

// mayRevert returns an error if this process may not undo the entries. A check for an
// apply that would first claim the node may look at it, though.
func (j *Journal) mayRevert(ctx context.Context) error {
	p, err := j.head()
	switch {
	case err != nil || j.options.AnyOwner:
		return err
	case j.entered(ctx) == opCheck && j.options.Owner != "":
		return j.claimable(p)
	}
	return j.allowed(p)
}

// allowed returns an error unless the node has no owner, or this one.
func (j *Journal) allowed(p *page) error {
	who, current := j.options.Owner, p.current()
	if current.Generation == 0 || current.Name == who {
		return nil
	}
	if who == "" {
		return fmt.Errorf("%w: %s, and no owner is configured; nothing is changed (configure the owner, or allow any owner)", ErrNotOwner, current)
	}
	return fmt.Errorf("%w: %s, and this is %q; nothing is changed", ErrNotOwner, current, who)
}

// superseded reports whether owner who had the node before its present owner.
func (p *page) superseded(who string) bool {
	return slices.ContainsFunc(p.Owners, func(o owner) bool { return o.Name == who })
}

// claim makes who the node's owner. If who already is, only the process changes.
func (l *log) claim(who string, by *claimant) error {
	current := l.current()
	if current.Generation > 0 && current.Name == who {
		current.Process = by
		return l.add(envelope{Record: recordOwner}, current)
	}
	next := owner{Name: who, Generation: current.Generation + 1, Since: time.Now().UTC().Truncate(time.Second), Process: by}
	if current.Process != nil { // needed for the present owner only
		current.Process = nil
		if err := l.add(envelope{Record: recordOwner}, current); err != nil {
			return err
		}
	}
	return l.add(envelope{Record: recordOwner}, next)
}

func (o owner) String() string {
	return fmt.Sprintf("%q (generation %d, since %s)", o.Name, o.Generation, o.Since.Format(time.RFC3339))
}

// Owner returns the node's owner and the generation of the ownership, which each new
// owner raises by one. If the node has no owner, the generation is 0.
func (j *Journal) Owner() (name string, generation int, err error) {
	if j == nil {
		return "", 0, nil
	}
	p, err := j.head()
	if err != nil {
		return "", 0, err
	}
	return p.current().Name, p.current().Generation, nil
}

// ownerOf names the owner that began e, as far as it is known.
func (p *page) ownerOf(e Entry) string {
	for _, o := range p.Owners {
		if o.Generation == e.Generation {
			return fmt.Sprintf("owner %q", o.Name)
		}
	}
	return "an unnamed owner"
}
