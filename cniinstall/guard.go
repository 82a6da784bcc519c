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

// ErrUninstalled means that the installation was undone, or never made, so there is
// nothing to guard. It matches [journal.ErrRevoked].
var ErrUninstalled error = uninstalled{}

type uninstalled struct{}

func (uninstalled) Error() string        { return "no longer installed" }
func (uninstalled) Is(target error) bool { return target == journal.ErrRevoked }
func (uninstalled) Code() string         { return code.LedgerRevoked }

// ErrContested means that another program, such as another agent's guard, keeps
// undoing the repairs.
var ErrContested = errors.New("another program undoes each repair")

// Guard repairs an installation that other programs change: four times a second it
// inspects the folders, and if a file has been changed, moved or removed, or a
// folder replaced, it applies Install again. Thus every change is repaired within a
// second, provided that the repair itself takes at most half a second.
//
// It only guards files that have already been applied, and installs nothing new. If
// the context has a journal, the entries of its step there determine what has been
// applied (see bootstrap.Plan.Inside). The guard ends if there is an uninstall
// ([ErrUninstalled]), if other content is installed ([journal.ErrRevoked]), or if
// another owner claims the node ([journal.ErrNotOwner]).
type Guard struct {
	// Install is the installation that has been applied.
	Install Install

	// Lock is held only during each repair, or while the guard confirms that the
	// installation was undone; the journal is read after it is taken. It should be
	// the node's lock, hostns.Host.Lock, which plans hold: the journal excludes no
	// other process, so without the lock the guard may repair files that an
	// uninstall is just removing. If nil, no lock is taken.
	Lock func(ctx context.Context) (unlock func() error, err error)

	// Patience is how long the guard continues, with at most four repairs a second,
	// while another program undoes each of them. Then it ends with [ErrContested].
	// Zero means 5 minutes.
	Patience time.Duration

	// Done is called with the changes of each repair, and with errors that do not
	// end the guard: a failed repair, which is tried again, and [ErrContested],
	// once whenever another program begins to undo the repairs. It may be nil.
	Done func(changes []string, err error)
}

// Run guards the installation until ctx ends or another reason stops it, and always
// returns an error: that of ctx, [ErrUninstalled], [journal.ErrRevoked],
// [journal.ErrNotOwner], [ErrContested], or that of an Install with invalid fields.
//
// All paths are resolved on the calling thread, so Run may run inside hostns.Do for
// any length of time. Files are read only after the name, size, mode, owner or time
// of a relevant file has changed: an installed file, one that the configuration
// needs or, where it depends on these (Exclusive, and a Config that is neither
// [Whole] nor [Agent]), another configuration. While none of 28 files changes, Run
// needs 2 ms of processor time a second (BenchmarkCNI7_Idle, in a process that does
// nothing else), regardless of the number of other files beside them.
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
	seen    string   // the folders' appearance at the last look; empty: unknown
	watched []string // decisive files, except other configurations; nil: unknown
	others  listing  // of the folder of configurations

	known map[string]string // target: its hash, as the journal had it last; empty: it was just begun
	one   string            // of these

	retry     time.Time // when to look regardless of appearance; zero: never
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

// look repairs differences if the appearance has changed. An error ends the guard.
func (r *guarding) look(ctx context.Context) error {
	seen := r.appearance(ctx) // first, so that the next look sees later changes
	if seen == r.seen && (r.retry.IsZero() || time.Now().Before(r.retry)) {
		return nil
	}
	r.seen, r.retry = seen, time.Time{}
	changed, err := r.differs(ctx)
	if err == nil && changed {
		r.seen = "" // the same change may recur before the next look
	}
	if err == nil && changed || errors.Is(err, ErrUninstalled) { // or another process is just recording anew
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

// fail reports an error, once, and schedules another repair: some time later, or at
// the next change not made by the attempt itself. A change during the attempt may
// be the cause of the error: the next look will show.
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

// differs compares without the lock. The files are compared with the earlier
// record: the next look sees an uninstall that ends meanwhile.
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

// survey inspects the installation. An error may mean that the guard must end.
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

// repair takes the lock and applies the installation if it still differs.
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

// contested reports to trouble that another program undoes each repair, and returns an error,
// which ends the guard, if that lasts too long.
func (r *guarding) contested(found string) error {
	now := time.Now()
	switch r.contest.add(found, now) {
	case contestBegins:
		r.trouble(fmt.Errorf("%w: repairing every %v, for up to %v", ErrContested, lookEvery, r.Patience))
	case contestGoesOn:
		if lasted := now.Sub(r.contest.since); lasted >= r.Patience {
			return fmt.Errorf("%w: gave up after %v and %d repairs", ErrContested, lasted.Round(time.Second), r.contest.total)
		}
	}
	return nil
}
