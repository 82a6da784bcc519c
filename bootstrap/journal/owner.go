// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/internal/remedy"
)

// Verify is an operation for [Journal.Enter] that no plan has.
const Verify = "verify"

// The operations of plans, as package bootstrap names them.
const (
	opCheck       = "check"
	opApply       = "apply"
	opCheckRevert = "check-revert"
	opRevert      = "revert"
)

const (
	enterTimeout  = time.Minute // far more than undoing a node takes
	enterInterval = 50 * time.Millisecond
)

// Enter returns an error unless this process may do op on the node: one of the
// operations of a plan (bootstrap.Op), or [Verify].
//
//	apply         claims the node for the owner, the first time
//	check         fails where apply would; changes nothing and keeps nobody out
//	revert        must be the owner
//	check-revert  fails where revert would; changes nothing and keeps nobody out
//	verify        fails unless the owner still has the node
//
// Until leave is called, an apply and a revert exclude each other, in other processes
// too: the one that comes second waits for up to a minute. A plan enters the journal
// before its first step and leaves it after its last; its steps get the context that
// Enter returns.
//
// The error matches [ErrNotOwner] if somebody else owns the node, and [ErrRevoked]
// if the node was this process's and no longer is.
func (j *Journal) Enter(ctx context.Context, op string) (inside context.Context, leave func() error, err error) {
	if j == nil {
		return ctx, nothing, ctx.Err()
	}
	inside, leave = context.WithValue(ctx, enteredKey{j.shared}, op), nothing
	switch op {
	case opApply, Verify, opRevert:
		leave, err = j.enter(ctx, op)
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

// enteredKey is the context key of the operation for which a journal was entered.
type enteredKey struct{ *shared }

func (j *Journal) entered(ctx context.Context) string {
	op, _ := ctx.Value(enteredKey{j.shared}).(string)
	return op
}

func nothing() error { return nil }

func (j *Journal) enter(ctx context.Context, op string) (leave func() error, err error) {
	lock, err := j.lock(ctx, op)
	if err != nil {
		return nil, err
	}
	switch op {
	case opApply:
		if err = j.claim(lock); err == nil {
			err = j.clear()
		}
	case Verify:
		err = j.verify()
	case opRevert:
		err = j.mayRevert(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, unlock(lock))
	}
	return func() error {
		err := j.leave(op, lock)
		return errors.Join(err, unlock(lock))
	}, nil
}

func unlock(lock *os.File) error {
	if lock == nil {
		return nil
	}
	return lock.Close()
}

// lock waits until no process that excludes this one is at work: a revert excludes
// all others, and so does an apply while it claims the node. The lock is nil if
// there is no journal yet, and so nobody to exclude.
func (j *Journal) lock(ctx context.Context, op string) (*os.File, error) {
	deadline := time.NewTimer(enterTimeout)
	defer deadline.Stop()
	tick := time.NewTicker(enterInterval)
	defer tick.Stop()
	for {
		lock, busy, err := j.tryLock(op)
		if err != nil || !busy {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s is in use by another apply or revert: %w", j.Dir(), context.Cause(ctx))
		case <-deadline.C:
			return nil, fmt.Errorf("%s is in use by another apply or revert, and was not free within %s", j.Dir(), enterTimeout)
		case <-tick.C:
		}
	}
}

// tryLock opens and locks the lock file, which nobody else can open.
func (j *Journal) tryLock(op string) (lock *os.File, busy bool, err error) {
	if op == opApply {
		if err := j.mayApply(); err != nil {
			return nil, false, err // before anything is made: it may have been uninstalled
		}
	}
	d, err := j.openDir()
	if d == nil && err == nil && op == opApply && j.options.Owner != "" {
		d, _, err = j.makeDir()
	}
	if d == nil || err != nil {
		return nil, false, err
	}
	defer d.Close()
	open := func() (*os.File, error) { return d.Open(lockName) }
	makes := op == opRevert || op == opApply && j.options.Owner != ""
	if makes {
		open = func() (*os.File, error) { return d.OpenOrCreate(lockName, 0o600) }
	}
	lock, err = open()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, makes, nil // who reverts removes the directory
	case err != nil:
		return nil, false, fmt.Errorf("lock the journal: %w", remedy.File(err))
	}
	if err := ownLock(d.Path(lockName), lock.Stat); err != nil {
		return nil, false, errors.Join(err, lock.Close())
	}
	locked, err := flock(lock, op != Verify)
	if err == nil && locked {
		locked, err = j.inPlace(lock)
	}
	if err != nil || !locked {
		return nil, err == nil, errors.Join(err, lock.Close())
	}
	return lock, false, nil
}

// inPlace reports whether lock is still the journal's.
func (j *Journal) inPlace(lock *os.File) (bool, error) {
	d, err := j.openDir()
	if d == nil || err != nil {
		return false, err
	}
	defer d.Close()
	named, err := d.Lstat(lockName)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	open, errOpen := lock.Stat()
	if err := errors.Join(err, errOpen); err != nil {
		return false, err
	}
	return os.SameFile(named, open), nil
}

// leave remembers which journal this process has applied to. After a revert, a
// journal without entries is removed, and its owners with it.
func (j *Journal) leave(op string, lock *os.File) error {
	if op == opRevert && lock == nil {
		return nil
	}
	p, err := j.load()
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if op == opRevert {
		if len(p.Entries) > 0 {
			return nil
		}
		return j.discard()
	}
	if j.id == "" {
		j.id = p.ID
	}
	return nil
}

// claim makes Options.Owner the node's owner, unless that owner was superseded.
// Once it is done, other processes may apply at the same time.
func (j *Journal) claim(lock *os.File) error {
	p, err := j.load()
	if err != nil {
		return err
	}
	if j.hasApplied() {
		err = j.revoked(p)
	} else {
		err = j.claimFirst(p)
	}
	if err != nil || lock == nil {
		return err
	}
	_, err = flock(lock, false)
	return err
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
	p, err := j.load()
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

// Claims reports whether an apply would give the node a new owner: this process's
// owner does not have it yet.
func (j *Journal) Claims() (bool, error) {
	if j == nil || j.options.Owner == "" {
		return false, nil
	}
	p, err := j.load()
	return err == nil && p.current().Name != j.options.Owner, err
}

// mayApply returns the error that an apply would get.
func (j *Journal) mayApply() error {
	p, err := j.load()
	switch {
	case err != nil:
		return err
	case j.hasApplied():
		return j.revoked(p)
	}
	return j.claimable(p)
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
	p, err := j.load()
	if err != nil {
		return err
	}
	if j.hasApplied() {
		return j.revoked(p)
	}
	if err := j.allowed(p); err != nil {
		return err
	}
	if p.current().Generation > 0 { // else its owner may still come
		j.bind(p)
	}
	return nil
}

// revoked says why a process that has applied before may not do so again.
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

// mayRevert returns an error if this process may not undo what is recorded. A check
// for an apply that would first claim the node may look at it, though.
func (j *Journal) mayRevert(ctx context.Context) error {
	p, err := j.load()
	switch {
	case err != nil || j.options.AnyOwner:
		return err
	case j.entered(ctx) == opCheck && j.options.Owner != "":
		return j.claimable(p)
	}
	return j.allowed(p)
}

// allowed returns an error unless the node belongs to nobody, or to the owner.
func (j *Journal) allowed(p *page) error {
	who, current := j.options.Owner, p.current()
	if current.Generation == 0 || current.Name == who {
		return nil
	}
	if who == "" {
		return fmt.Errorf("%w: %s, and this is nobody in particular; nothing is changed (say who this is, or that any owner's is meant)", ErrNotOwner, current)
	}
	return fmt.Errorf("%w: %s, and this is %q; nothing is changed", ErrNotOwner, current, who)
}

// superseded reports whether who owned the node before its present owner.
func (p *page) superseded(who string) bool {
	return slices.ContainsFunc(p.Owners, func(o owner) bool { return o.Name == who })
}

// claim makes who the node's owner. One that is so already stays as it is, but for the
// process.
func (l *log) claim(who string, by *claimant) error {
	current := l.current()
	if current.Generation > 0 && current.Name == who {
		current.Process = by
		return l.add(envelope{Record: recordOwner}, current)
	}
	next := owner{Name: who, Generation: current.Generation + 1, Since: time.Now().UTC().Truncate(time.Second), Process: by}
	if current.Process != nil { // asked of the present owner only
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

// Owner returns the node's owner and the generation of the ownership, which each
// new owner raises by one. If nobody owns the node, the generation is 0.
func (j *Journal) Owner() (name string, generation int, err error) {
	if j == nil {
		return "", 0, nil
	}
	p, err := j.load()
	if err != nil {
		return "", 0, err
	}
	return p.current().Name, p.current().Generation, nil
}

// ownerOf names who began e, as far as that is known.
func (p *page) ownerOf(e Entry) string {
	for _, o := range p.Owners {
		if o.Generation == e.Generation {
			return fmt.Sprintf("owner %q", o.Name)
		}
	}
	return "nobody in particular"
}
