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

// What a process enters a journal for: see [Journal.Enter].
const (
	Apply       = "apply"        // claims the node for the owner, the first time
	Check       = "check"        // wants to know whether Apply may, changes nothing and keeps nobody out
	Verify      = "verify"       // wants to know that the node still is the owner's
	Revert      = "revert"       // must be the owner
	CheckRevert = "check-revert" // the same, but changes nothing and keeps nobody out
)

const (
	enterTimeout  = time.Minute // far more than undoing a node takes
	enterInterval = 50 * time.Millisecond
)

// Enter says whose the node is, and whether this process may do what op says.
// Until leave is called, applies and reverts keep each other out, also those of
// other processes: who comes meanwhile waits up to a minute. A plan enters before
// its first step and leaves after its last; its steps get the context that Enter
// returns.
//
// The error matches [ErrNotOwner] where the node is somebody else's, and
// [ErrRevoked] where it was this process's, and is not any more.
func (j *Journal) Enter(ctx context.Context, op string) (inside context.Context, leave func() error, err error) {
	if j == nil {
		return ctx, nothing, ctx.Err()
	}
	inside, leave = context.WithValue(ctx, enteredKey{j.shared}, op), nothing
	switch op {
	case Apply, Verify, Revert:
		leave, err = j.enter(ctx, op)
	case Check:
		err = j.mayApply()
	case CheckRevert:
		err = j.mayRevert(inside)
	default:
		err = fmt.Errorf("enter the journal: unknown operation %q", op)
	}
	if err != nil {
		return nil, nil, err
	}
	return inside, leave, nil
}

// enteredKey is for what a journal was entered for, in the context of those inside.
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
	case Apply:
		if err = j.claim(lock); err == nil {
			err = j.clear()
		}
	case Verify:
		err = j.verify()
	case Revert:
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

// lock waits until nobody who excludes this process is at work: a revert keeps
// all others out, and so does an apply while it claims the node. Nil: nobody who
// has to be kept out has been here yet.
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
	d, err := j.openDir()
	if d == nil && err == nil && op == Apply && j.options.Owner != "" {
		d, _, err = j.makeDir()
	}
	if d == nil || err != nil {
		return nil, false, err
	}
	defer d.Close()
	open := func() (*os.File, error) { return d.Open(lockName) }
	makes := op == Revert || op == Apply && j.options.Owner != ""
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
	if err := trusted(d.Path(lockName), lock.Stat); err != nil {
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

// leave notes what this process knows of the journal from now on. After a
// revert a journal without entries goes, with its owners.
func (j *Journal) leave(op string, lock *os.File) error {
	if op == Revert && lock == nil {
		return nil
	}
	p, err := j.load()
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if op == Revert {
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

// claim makes Options.Owner the node's owner, unless it was superseded. Then
// others may apply beside it.
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
	if who, current := j.options.Owner, p.current(); who != "" && who != current.Name {
		current = owner{who, current.Generation + 1, time.Now().UTC().Truncate(time.Second)}
		if err := j.change(func(p *page) error { p.claim(current); return nil }); err != nil {
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

// claimable is an error if the owner was superseded.
func (j *Journal) claimable(p *page) error {
	who, current := j.options.Owner, p.current()
	if who == "" || who == current.Name || j.options.TakeOver || !p.superseded(who) {
		return nil
	}
	return fmt.Errorf("%w: %s, after %q; nothing is changed (take it over explicitly if that is meant)", ErrNotOwner, current, who)
}

// mayApply is the error that an apply would get.
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

// bind remembers what this process has applied to.
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

// verify is an error if the node is not the owner's.
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

// revoked is why a process that has applied before may not do so again.
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

// mayRevert is an error if what is recorded is not this process's to undo. The
// check of an apply that would claim the node first may look at it.
func (j *Journal) mayRevert(ctx context.Context) error {
	p, err := j.load()
	switch {
	case err != nil || j.options.AnyOwner:
		return err
	case j.entered(ctx) == Check && j.options.Owner != "":
		return j.claimable(p)
	}
	return j.allowed(p)
}

// allowed is an error unless the node is nobody's, or the owner's.
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

// superseded reports whether who owned the node before its owner did.
func (p *page) superseded(who string) bool {
	return slices.ContainsFunc(p.Owners, func(o owner) bool { return o.Name == who })
}

func (p *page) claim(o owner) {
	p.Owners = append(p.Owners, o)
	p.Owners = p.Owners[max(0, len(p.Owners)-maxOwners):]
}

func (o owner) String() string {
	return fmt.Sprintf("%q (generation %d, since %s)", o.Name, o.Generation, o.Since.Format(time.RFC3339))
}

// Owner names the node's owner and the generation of the ownership, which each
// new owner raises by one. A generation of 0: nobody owns it.
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
