// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/code"
)

const (
	lookEvery  = 250 * time.Millisecond
	retryFirst = time.Second // after an error; then twice as long, and so on
	retryLast  = time.Minute

	contestAfter = 5                // repairs of the same change in a row
	contestEnds  = 10 * time.Second // without a repair: a later change is unrelated
)

// errUninstalled means that the installation was undone, or never made, so there is
// nothing to guard. It matches [ledger.ErrRevoked].
var errUninstalled error = uninstalled{}

type uninstalled struct{}

func (uninstalled) Error() string        { return "no longer installed" }
func (uninstalled) Is(target error) bool { return target == ledger.ErrRevoked }
func (uninstalled) Code() string         { return code.Of(ledger.ErrRevoked) }

// errContested means that another program, such as another agent's guard, keeps
// undoing the repairs.
var errContested = errors.New("another program undoes each repair")

// Guard repairs an installation that other programs change: four times a second it
// inspects the folders, and if a file has been changed, moved or removed, or a
// folder replaced, it applies Install again. Thus every change is repaired within a
// second, provided that the repair itself takes at most half a second.
//
// It only guards files that its step has already applied, according to the context's ledger,
// and installs nothing new (see bootstrap.Plan.Inside). It ends if there is an uninstall, or
// if other content is installed ([ledger.ErrRevoked]), or if another owner claims the node
// ([ledger.ErrNotOwner]).
type Guard struct {
	// Install is the installation that the step has applied.
	Install Install
	Step    string

	// Lock is held only during each repair, or while the guard confirms that the
	// installation was undone; the ledger is read after it is taken. It should be
	// the node's lock, hostns.Host.Lock, which plans hold: without it the guard may repair
	// files that an uninstall is just removing. If nil, no lock is taken.
	Lock func(ctx context.Context) (unlock func() error, err error)

	// Done is called with the changes of each repair, and with errors that do not
	// end the guard: a failed repair, which is tried again, and once whenever another
	// program begins to undo the repairs: they then become rarer, up to one a minute. It may
	// be nil.
	Done func(changes []string, err error)
}

// Run guards the installation until ctx ends or another reason stops it, and always
// returns an error: that of ctx, [ledger.ErrRevoked], [ledger.ErrNotOwner], or that of an Install with invalid fields.
//
// All paths are resolved on the calling thread, so Run may run inside hostns.Do for
// any length of time. Files are read only after the name, size, mode, owner or time
// of a relevant file has changed: an installed file, one that the configuration
// needs or, where it depends on these (Exclusive, and a [Chained]), another
// configuration. The number of other files beside them does not matter.
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
	book    *ledger.Book
	seen    string            // the folders' appearance at the last look; empty: unknown
	watched []string          // decisive files, except other configurations; nil: unknown
	others  listing           // of the folder of configurations
	claims  map[string]string // what the step wants, as last recorded: the hash, by file name; nil: unknown

	retry     time.Time // when to look regardless of appearance; zero: never
	failures  int
	lastError string

	repaired string // the changes of the last repair
	again    int    // how often in a row they were the same
	last     time.Time
	pause    time.Time // when the next repair may be made
}

func (g Guard) run(ctx context.Context) (err error) {
	if g.Install, err = g.Install.withDefaults(); err != nil {
		return err
	}
	r := &guarding{Guard: g, book: ledger.From(ctx)}
	if r.book == nil {
		return fmt.Errorf("%w: there is no ledger", errUninstalled)
	}
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
	if seen == r.seen && (r.retry.IsZero() || time.Now().Before(r.retry)) || time.Now().Before(r.pause) {
		return nil
	}
	r.seen, r.retry = seen, time.Time{}
	_, changes, err := r.differs(ctx)
	if err == nil && len(changes) > 0 {
		r.seen = "" // the same change may recur before the next look
	}
	if err == nil && len(changes) > 0 || errors.Is(err, errUninstalled) { // or another process is just recording anew
		err = r.repair(ctx)
	}
	switch {
	case err == nil:
		r.failures, r.lastError = 0, ""
		return nil
	case errors.Is(err, ledger.ErrRevoked), errors.Is(err, ledger.ErrNotOwner), ctx.Err() != nil:
		return err
	}
	r.fail(ctx, err)
	return nil
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
	r.retry = time.Now().Add(growing(retryFirst, r.failures-1))
	if text := err.Error(); text != r.lastError {
		r.lastError = text
		r.done(nil, fmt.Errorf("guard CNI: %w", err))
	}
}

// growing doubles a wait that often, up to a limit.
func growing(first time.Duration, often int) time.Duration {
	return min(first<<min(often, 10), retryLast)
}

func (r *guarding) done(changes []string, err error) {
	if r.Done != nil {
		r.Done(changes, err)
	}
}

// differs returns what a repair would change, and needs no lock. An error may mean that the
// guard must end.
func (r *guarding) differs(ctx context.Context) (wants ledger.Wants, changes []string, err error) {
	if err := r.book.Verify(ctx); err != nil {
		if !errors.Is(err, ledger.ErrNotOwner) && errors.Is(err, ledger.ErrRevoked) {
			err = fmt.Errorf("%w: %w", errUninstalled, err)
		}
		return wants, nil, err
	}
	claims, err := r.recorded(ctx)
	if err != nil {
		return wants, nil, err
	}
	j, err := r.Install.survey(ctx)
	if err != nil {
		return wants, nil, err
	}
	if wants, err = j.wants(); err != nil {
		return wants, nil, err
	}
	for i, w := range wants.List {
		if !j.isOwn(w) {
			continue
		}
		wants.List[i].OwnCopy = true
		if err := r.mayRepair(ctx, w, claims); err != nil {
			return wants, nil, err
		}
	}
	r.claims, r.watched = claims, j.decisive()
	look, err := r.book.Check(ctx, r.Step, wants)
	return wants, look.Changes, err
}

// isOwn reports whether a want is of the installation's own plugins or configuration. What
// another program writes there is contested, however long the guard takes to repair it, and
// so it never becomes the original.
func (j *job) isOwn(w ledger.Want) bool {
	return !w.Loose && (w.Kind == j.kinds.plugin || w.Kind == j.kinds.conf)
}

// recorded returns the hashes of what the step wants, by file name: the folders may lead
// elsewhere by now. If it has lost a file that it wanted before, it was undone.
func (r *guarding) recorded(ctx context.Context) (map[string]string, error) {
	files, err := readRecorded(ctx)
	if err != nil {
		return nil, err
	}
	claims := map[string]string{}
	for _, o := range files.files {
		for _, c := range o.Claims {
			if c.Agent == files.agent && c.Step == r.Step {
				claims[filepath.Base(o.Object)] = c.To.SHA256
			}
		}
	}
	for name := range r.claims {
		if _, known := claims[name]; !known {
			return nil, fmt.Errorf("%w: %s is no longer recorded", errUninstalled, name)
		}
	}
	if len(claims) == 0 {
		return nil, fmt.Errorf("%w: step %s has recorded nothing", errUninstalled, r.Step)
	}
	return claims, nil
}

// mayRepair returns an error if a file must not be repaired: the same owner has installed
// other content since, or none.
func (r *guarding) mayRepair(ctx context.Context, w ledger.Want, claims map[string]string) (err error) {
	name := filepath.Base(w.Object)
	sum, known := claims[name]
	switch {
	case !known:
		return fmt.Errorf("%w: %s is not recorded", errUninstalled, w.Object)
	case w.Kind.Name == confKind && !isFixed(r.Install.Config): // its content may differ each time
		return nil
	}
	own, seen := r.claims[name]
	if !seen {
		own, err = hashOf(ctx, w.To)
	}
	if err == nil && own != sum {
		err = fmt.Errorf("%w: %s was installed with other content since", ledger.ErrRevoked, w.Object)
	}
	return err
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
	wants, changes, err := r.differs(ctx)
	if err != nil || len(changes) == 0 {
		return err
	}
	done, err := r.book.Apply(ctx, r.Step, wants)
	if len(done.Changes) > 0 {
		r.done(done.Changes, nil)
	}
	if claims, errClaims := r.recorded(ctx); errClaims == nil {
		r.claims = claims
	}
	r.contested(strings.Join(changes, "\n"))
	return err
}

// contested distinguishes a fight from a series of accidents: the same change is made again
// and again. The repairs then become rarer.
func (r *guarding) contested(change string) {
	now := time.Now()
	if change != r.repaired || now.Sub(r.last) > contestEnds && now.Sub(r.pause) > contestEnds {
		r.repaired, r.again = change, 0
	}
	r.last = now
	if r.again++; r.again <= contestAfter {
		return
	}
	r.pause = now.Add(growing(lookEvery, r.again-contestAfter))
	if r.again == contestAfter+1 {
		r.done(nil, fmt.Errorf("guard CNI: %w: repairing it more and more rarely, down to once in %v", errContested, retryLast))
	}
}
