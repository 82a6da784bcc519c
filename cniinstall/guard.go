// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/code"
)

const (
	lookEvery  = 250 * time.Millisecond
	retryFirst = time.Second // after an error; then twice as long, and so on
	retryLast  = time.Minute

	defaultPatience = 5 * time.Minute
)

// ErrUninstalled says that the installation was undone, or never made, so there is
// nothing to guard. It matches [journal.ErrRevoked].
var ErrUninstalled error = uninstalled{}

type uninstalled struct{}

func (uninstalled) Error() string        { return "no longer installed" }
func (uninstalled) Is(target error) bool { return target == journal.ErrRevoked }
func (uninstalled) Code() string         { return code.JournalRevoked }

// ErrContested says that somebody else, such as the guard of another agent, keeps
// undoing the repairs.
var ErrContested = errors.New("somebody else undoes each repair")

// Guard repairs an installation that somebody changes: four times a second it looks
// at the folders, and if one of the files has been changed, moved or removed, or a
// folder replaced, it applies Install again. So every change is repaired within a
// second, provided that the repair itself takes at most half a second.
//
// It only guards what has already been applied, and installs nothing new. If
// the context has a journal, the entries there of its step say what has been applied
// (see bootstrap.Plan.Inside). The guard ends if there is an
// uninstall ([ErrUninstalled]), if other content is installed
// ([journal.ErrRevoked]), or if another owner claims the node
// ([journal.ErrNotOwner]).
type Guard struct {
	// Install is what has been applied.
	Install Install

	// Lock is held only during each repair, or while the guard makes sure that the
	// installation was undone, and the journal is read after it is taken. It should be
	// the node's, hostns.Host.Lock, which plans hold: the journal keeps nobody out, so
	// without the lock that an uninstall holds the guard may repair what is just being
	// removed. If nil, no lock is taken.
	Lock func(ctx context.Context) (unlock func() error, err error)

	// Patience is how long the guard goes on, with at most four repairs a second,
	// while somebody else undoes each of them. Then it ends with [ErrContested].
	// Zero means 5 minutes.
	Patience time.Duration

	// Done is called with what each repair changed, and with errors that do not end
	// the guard: a failed repair, which is tried again, and [ErrContested], once
	// whenever somebody else begins to undo the repairs. It may be nil.
	Done func(changes []string, err error)
}

// Run guards the installation until ctx ends or there is a reason to stop, and
// always returns an error: that of ctx, [ErrUninstalled], [journal.ErrRevoked],
// [journal.ErrNotOwner], [ErrContested], or that of an Install with invalid fields.
//
// All paths are resolved on the calling thread, so Run may run inside hostns.Do for
// any length of time. Files are read only after the name, size, mode, owner or time
// of one has changed: of one that is installed, or that the configuration needs, and
// of configurations of others where it depends on these (Exclusive, and a Config that is
// neither [Whole] nor [Agent]). While none of 28 files changes, Run needs 2 ms of
// processor time a second (BenchmarkCNI7_Idle, in a process that does nothing else),
// however many others there are beside them.
//
// Run does not notice a write that changes neither size nor time, such as through a
// memory map of a file on a tmpfs.
func (g Guard) Run(ctx context.Context) error {
	return fmt.Errorf("guard CNI: %w", g.run(ctx))
}

// guarding is a running guard. It starts no goroutine: only Run's own touches
// paths.
type guarding struct {
	Guard
	seed    maphash.Seed
	seen    string   // what the folders looked like at the last look; empty: unknown
	watched []string // files that decide, but for configurations of others; nil: unknown
	others  listing  // of the folder of configurations

	known map[string]string // target: its hash, as the journal had it last; empty: it was just begun
	one   string            // of these

	retry     time.Time // when to look whatever they look like; zero: never
	failures  int
	lastError string
	contest   contest
}

func (g Guard) run(ctx context.Context) error {
	var err error
	if g.Install, err = g.Install.withDefaults(); err != nil {
		return err
	}
	g.Patience = cmp.Or(g.Patience, defaultPatience)
	r := &guarding{Guard: g, seed: maphash.MakeSeed()}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.look(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
}

// look repairs what differs, if there is reason to think that something does.
// An error ends the guard.
func (r *guarding) look(ctx context.Context) error {
	seen := r.appearance(ctx) // first: what changes from now on is seen the next time
	if seen == r.seen && (r.retry.IsZero() || time.Now().Before(r.retry)) {
		return nil
	}
	r.seen, r.retry = seen, time.Time{}
	changed, err := r.differs(ctx)
	if err == nil && changed {
		r.seen = "" // the same may be done again before the next look
	}
	if err == nil && changed || errors.Is(err, ErrUninstalled) { // or others are just recording anew
		err = r.repair(ctx)
	}
	switch {
	case err == nil:
		r.failures, r.lastError = 0, ""
		return nil
	case ends(err) || ctx.Err() != nil:
		return err
	}
	r.fail(ctx, err)
	return nil
}

func ends(err error) bool {
	return errors.Is(err, journal.ErrRevoked) || errors.Is(err, journal.ErrNotOwner) || errors.Is(err, ErrContested)
}

// fail reports an error, once, and has the repair tried again: some time later, or
// when something changes other than by the attempt itself. If something changed
// during the attempt, that may be the cause of the error: the next look will show.
func (r *guarding) fail(ctx context.Context, err error) {
	seen := r.appearance(ctx)
	if r.failures++; r.failures == 1 && seen != r.seen {
		return
	}
	r.seen = seen
	r.retry = time.Now().Add(min(retryFirst<<min(r.failures-1, 10), retryLast))
	if text := err.Error(); text != r.lastError {
		r.lastError = text
		r.trouble(err)
	}
}

func (r *guarding) trouble(err error) {
	if r.Done != nil {
		r.Done(nil, fmt.Errorf("guard CNI: %w", err))
	}
}

// differs compares without the lock. What was recorded before the files were compared
// is what they are as: an uninstall that ends meanwhile is seen the next time.
func (r *guarding) differs(ctx context.Context) (bool, error) {
	if err := r.verify(ctx); err != nil {
		return false, err
	}
	j, err := r.survey(ctx)
	if err != nil {
		return false, err
	}
	defer j.close()
	if len(j.changes()) > 0 {
		return true, nil
	}
	r.remember(j, j.known)
	return false, nil
}

// survey looks at the installation. An error may be that the guard is to end.
func (r *guarding) survey(ctx context.Context) (*job, error) {
	j, err := r.Install.survey(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.mayRepair(ctx, j); err != nil {
		j.close()
		return nil, err
	}
	r.watched = j.decisive()
	return j, nil
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
	if err := r.verify(ctx); err != nil {
		return err
	}
	j, err := r.survey(ctx)
	if err != nil {
		return err
	}
	defer j.close()
	changes, found := j.changes(), j.found()
	if len(changes) == 0 {
		r.remember(j, j.known)
		return nil
	}
	err = j.apply(ctx)
	known, unknown := recorded(ctx, j.journal)
	if unknown == nil {
		r.remember(j, known)
	}
	if err = errors.Join(err, unknown); err != nil {
		return err
	}
	if r.Done != nil {
		r.Done(changes, nil)
	}
	return r.contested(found)
}

// contested says whether somebody else undoes each repair, and ends the guard if
// that lasts too long.
func (r *guarding) contested(found string) error {
	now := time.Now()
	switch r.contest.add(found, now) {
	case contestBegins:
		r.trouble(fmt.Errorf("%w: it is done again every %v, for %v", ErrContested, lookEvery, r.Patience))
	case contestGoesOn:
		if lasted := now.Sub(r.contest.since); lasted >= r.Patience {
			return fmt.Errorf("%w: gave up after %v and %d repairs", ErrContested, lasted.Round(time.Second), r.contest.total)
		}
	}
	return nil
}
