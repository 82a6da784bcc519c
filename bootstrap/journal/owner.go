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

	"github.com/slipway-dev/slipway/internal/durable"
)

// What a process enters a journal for: see [Journal.Enter].
const (
	Apply       = "apply"        // claims the node for the owner, the first time
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
// its first step and leaves after its last.
//
// The error matches [ErrNotOwner] where the node is somebody else's, and
// [ErrRevoked] where it was this process's, and is not any more.
func (j *Journal) Enter(ctx context.Context, op string) (leave func() error, err error) {
	if j == nil {
		return nothing, ctx.Err()
	}
	switch op {
	case Apply, Verify, Revert:
		return j.enter(ctx, op)
	case CheckRevert:
		return nothing, j.mayRevert()
	}
	return nil, fmt.Errorf("enter the journal: unknown operation %q", op)
}

func nothing() error { return nil }

func (j *Journal) enter(ctx context.Context, op string) (leave func() error, err error) {
	d, err := j.lock(ctx, op == Revert)
	if err != nil {
		return nil, err
	}
	switch op {
	case Apply:
		err = j.claim()
	case Verify:
		err = j.verify()
	case Revert:
		err = j.mayRevert()
	}
	if err != nil {
		return nil, errors.Join(err, unlock(d))
	}
	return func() error { return errors.Join(j.leave(op), unlock(d)) }, nil
}

func unlock(d *durable.Dir) error {
	if d == nil {
		return nil
	}
	return d.Close()
}

// lock waits until nobody who excludes this process is at work. Nil: there is
// no journal yet, and so nothing to be kept out of.
func (j *Journal) lock(ctx context.Context, exclusive bool) (*durable.Dir, error) {
	deadline := time.NewTimer(enterTimeout)
	defer deadline.Stop()
	tick := time.NewTicker(enterInterval)
	defer tick.Stop()
	for {
		d, locked, err := j.tryLock(exclusive)
		if err != nil || locked || d == nil {
			return d, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s is in use by another process, which applies or reverts: %w", j.Dir(), context.Cause(ctx))
		case <-deadline.C:
			return nil, fmt.Errorf("%s is in use by another process, which applies or reverts, and was not free within %s", j.Dir(), enterTimeout)
		case <-tick.C:
		}
	}
}

// tryLock returns a directory that is not locked where it has to be tried again.
func (j *Journal) tryLock(exclusive bool) (d *durable.Dir, locked bool, err error) {
	if d, err = j.openDir(); d == nil || err != nil {
		return nil, false, err
	}
	if locked, err = lockDir(d.File(), exclusive); err == nil && locked {
		locked, err = j.inPlace(d)
	}
	if err != nil || !locked {
		err = errors.Join(err, d.Close())
	}
	return d, locked, err
}

// inPlace reports whether d is still the state directory: who reverts removes it.
func (j *Journal) inPlace(d *durable.Dir) (bool, error) {
	named, err := j.parent.Lstat(j.name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	open, errOpen := d.Stat()
	if err := errors.Join(err, errOpen); err != nil {
		return false, err
	}
	return os.SameFile(named, open), nil
}

// leave notes what this process knows of the journal from now on. After a
// revert a journal without entries goes, with its owners.
func (j *Journal) leave(op string) error {
	p, err := j.load()
	if err != nil {
		return err
	}
	if op == Revert {
		if len(p.Entries) > 0 {
			return nil
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		j.applied, j.existed, j.generation = false, false, 0
		return j.discard()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.existed = j.seen != nil
	return nil
}

// claim makes Options.Owner the node's owner, unless it was superseded.
func (j *Journal) claim() error {
	p, err := j.load()
	if err != nil {
		return err
	}
	if j.applied {
		return j.revoked(p)
	}
	who, current := j.options.Owner, p.current()
	switch {
	case who == "" || who == current.Name:
	case p.superseded(who) && !j.options.TakeOver:
		return fmt.Errorf("%w: %s, after %q; nothing is changed (take it over explicitly if that is meant)", ErrNotOwner, current, who)
	default:
		current = owner{who, current.Generation + 1, time.Now().UTC().Truncate(time.Second)}
		if err := j.change(func(p *page) error { p.claim(current); return nil }); err != nil {
			return err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.applied, j.existed, j.generation = true, j.seen != nil, current.Generation
	return nil
}

// verify is an error if the node is not the owner's.
func (j *Journal) verify() error {
	p, err := j.load()
	if err != nil {
		return err
	}
	if j.applied {
		return j.revoked(p)
	}
	if err := j.allowed(p); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.applied, j.existed, j.generation = true, j.seen != nil, p.current().Generation
	return nil
}

// revoked is why a process that has applied before may not do so again.
func (j *Journal) revoked(p *page) error {
	switch current := p.current(); {
	case j.existed && j.seen == nil:
		return fmt.Errorf("%w: it was uninstalled, and %s is gone", ErrRevoked, j.Dir())
	case current.Generation != j.generation:
		return fmt.Errorf("%w: %w: %s; nothing is changed", ErrRevoked, ErrNotOwner, current)
	}
	return nil
}

func (j *Journal) mayRevert() error {
	p, err := j.load()
	if err != nil || j.options.AnyOwner {
		return err
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
