// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	quietFor   = 20 * time.Millisecond  // without a further event, before a look
	unquietFor = 100 * time.Millisecond // from the first event to a look at the latest
	pauseLimit = 400 * time.Millisecond // between two repairs
	pollEvery  = 400 * time.Millisecond // where there is no inotify
	pollFor    = 5 * time.Second        // before inotify is tried again
	retryFirst = time.Second            // after an error; then twice as long, and so on
	retryLast  = time.Minute

	defaultPatience = 5 * time.Minute
)

// scope is a part of the installation that may have changed.
type scope uint8

const (
	scopeBin scope = 1 << iota
	scopeConf
	scopeBook
	everything = scopeBin | scopeConf | scopeBook
)

// watcher waits for changes.
type watcher interface {
	// wait returns at the first changes, at until (zero: never) or when ctx ends.
	wait(ctx context.Context, until time.Time) (scope, error)
	close()
}

// guarding is a guard at work. It has no goroutine: whatever touches a path is
// done by Run's own.
type guarding struct {
	Guard
	watcher watcher
	dirty   scope
	known   map[string]string // target: its hash, as the record had it last

	notBefore, retry time.Time // no look before; a look without an event (zero: none)
	contest          contest
	failures         int
	lastError        string
}

func (g Guard) run(ctx context.Context) error {
	var err error
	if g.Install, err = g.Install.withDefaults(); err != nil {
		return err
	}
	g.Install.Warn = nil
	g.Patience = cmp.Or(g.Patience, defaultPatience)
	r := &guarding{Guard: g, dirty: everything}
	defer r.unwatch()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.watch() // first: what happens during the look is seen after it
		if err := r.look(ctx); err != nil {
			return err
		}
		r.wait(ctx)
	}
}

// watch sees to it that there is a watcher: inotify, or if that is exhausted
// polling, until it is not any more.
func (r *guarding) watch() {
	p, polls := r.watcher.(*poller)
	if r.watcher != nil && !(polls && p.expired()) {
		return
	}
	w, err := newInotify(r.places())
	switch {
	case err == nil:
		r.unwatch()
		r.watcher, r.dirty = w, everything
	case polls:
		p.extend()
	default:
		r.trouble(fmt.Errorf("%w; the folders are looked at every %v", err, pollEvery))
		r.watcher = newPoller(r.places())
	}
}

func (r *guarding) unwatch() {
	if r.watcher != nil {
		r.watcher.close()
		r.watcher = nil
	}
}

// places are the folders to watch, and what for.
func (r *guarding) places() []place {
	places := []place{
		{dir: r.Install.BinDir, what: scopeBin, interesting: isVisible},
		{dir: r.Install.ConfDir, what: scopeConf, interesting: isConfName},
	}
	if dir := r.Install.StateDir; dir != "" {
		places = append(places, place{dir: dir, what: scopeBook, interesting: func(name string) bool { return name == bookName+".json" }})
	}
	return places
}

// wait collects changes until it is time for a look.
func (r *guarding) wait(ctx context.Context) {
	until := r.retry
	for first := (time.Time{}); ctx.Err() == nil; {
		what, err := r.watcher.wait(ctx, until)
		if err != nil { // the folders cannot be watched as they are now
			r.unwatch()
			what = everything
		}
		if r.dirty |= what; what == 0 || err != nil {
			return
		}
		now := time.Now()
		if first.IsZero() {
			first = now
		}
		until = earlier(now.Add(quietFor), first.Add(unquietFor))
		if until.Before(r.notBefore) {
			until = r.notBefore
		}
	}
}

// look repairs what differs. An error ends the guard.
func (r *guarding) look(ctx context.Context) error {
	what := r.dirty
	r.dirty, r.retry, r.notBefore = 0, time.Time{}, time.Time{}
	if what == 0 {
		return nil
	}
	changed, err := r.differs(ctx, what)
	if err == nil && changed {
		err = r.repair(ctx)
	}
	switch {
	case err == nil:
		r.failures, r.lastError = 0, ""
		return nil
	case ends(err) || ctx.Err() != nil:
		return err
	}
	r.fail(err)
	return nil
}

func ends(err error) bool {
	return errors.Is(err, ErrUninstalled) || errors.Is(err, ErrNotOwner) || errors.Is(err, ErrContested)
}

// fail tells of an error, once, and lets it be tried again.
func (r *guarding) fail(err error) {
	if text := err.Error(); text != r.lastError {
		r.lastError = text
		r.trouble(err)
	}
	r.dirty = everything
	r.retry = time.Now().Add(min(retryFirst<<min(r.failures, 10), retryLast))
	r.notBefore = time.Now().Add(pauseLimit)
	r.failures++
}

func (r *guarding) trouble(err error) {
	if r.Trouble != nil {
		r.Trouble(fmt.Errorf("guard CNI: %w", err))
	}
}

// differs looks at what may have changed, without the lock.
func (r *guarding) differs(ctx context.Context, what scope) (bool, error) {
	i := r.Install
	if what == scopeBook && r.known != nil {
		j := &job{Install: i}
		if err := j.openBook(); err != nil {
			return false, err
		}
		if err := r.ended(j.book); err != nil || r.remembers(j.book) {
			return false, err
		}
	} else if what&scopeBin == 0 {
		i.Plugins = nil // they take the longest
	}
	j, err := i.survey(ctx)
	if errors.Is(err, ErrPluginMissing) && i.Plugins == nil {
		j, err = r.Install.survey(ctx)
	}
	if err != nil {
		return false, err
	}
	if err := r.decide(ctx, j); err != nil {
		return false, err
	}
	if len(j.changes()) > 0 {
		return true, nil
	}
	r.remember(j)
	return false, nil
}

// repair applies the installation under the lock, if it still differs then.
func (r *guarding) repair(ctx context.Context) (err error) {
	if r.Lock != nil {
		unlock, lockErr := r.Lock(ctx)
		if lockErr != nil {
			return lockErr
		}
		defer func() { err = errors.Join(err, unlock()) }()
	}
	start := time.Now()
	j, err := r.Install.survey(ctx)
	if err != nil {
		return err
	}
	if err := r.decide(ctx, j); err != nil {
		return err
	}
	changes, found := j.changes(), j.found()
	if len(changes) == 0 {
		r.remember(j)
		return nil
	}
	err = j.apply(ctx)
	r.remember(j)
	if err != nil {
		return err
	}
	if r.Repaired != nil {
		r.Repaired(changes)
	}
	r.dirty = everything // it is looked at again
	return r.pace(found, time.Since(start))
}

// pace says when the next repair may come: the guard is at work for a quarter
// of the time at most, and if somebody else undoes each repair seldom, and not
// forever.
func (r *guarding) pace(found string, took time.Duration) error {
	now := time.Now()
	pause := min(3*took, pauseLimit)
	switch r.contest.add(found, now) {
	case contestBegins:
		r.trouble(fmt.Errorf("%w: it is done again every %v, for %v", ErrContested, pauseLimit, r.Patience))
		fallthrough
	case contestGoesOn:
		pause = pauseLimit
		if lasted := now.Sub(r.contest.since); lasted >= r.Patience {
			return fmt.Errorf("%w: gave up after %v and %d repairs", ErrContested, lasted.Round(time.Second), r.contest.total)
		}
	}
	r.retry = now.Add(pause)
	r.notBefore = r.retry
	return nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
