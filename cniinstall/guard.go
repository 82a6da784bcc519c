// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/input"
)

const (
	lookEvery  = 250 * time.Millisecond
	retryFirst = time.Second // after an error; then twice as long, and so on
	retryLast  = time.Minute

	defaultPatience = 5 * time.Minute
)

// ErrUninstalled says that the installation has been taken back, or was never
// made: there is nothing to guard. It matches [journal.ErrRevoked].
var ErrUninstalled error = uninstalled{}

type uninstalled struct{}

func (uninstalled) Error() string        { return "no longer installed" }
func (uninstalled) Is(target error) bool { return target == journal.ErrRevoked }

// ErrContested says that somebody else, such as the guard of another agent,
// undoes each repair.
var ErrContested = errors.New("somebody else undoes each repair")

// Guard keeps an installation as it is: four times a second it looks at the
// folders, and where one of the files has been changed, moved or removed, or a
// folder replaced, it applies Install again. So everything is repaired within a
// second, if that itself takes no longer than half of one.
//
// It installs nothing anew: what has been applied is guarded. With a Journal
// that decides, in which the context or the Journal has to name the step. An
// uninstall ends the guard ([ErrUninstalled]), and so does a later installation,
// with other content ([journal.ErrRevoked]) or by another owner, who has claimed
// the node ([journal.ErrNotOwner]).
type Guard struct {
	// Install is what has been applied. Its Warn is not called.
	Install Install

	// Lock is taken for each repair, and only for it; what the journal says is
	// read after that. An uninstall has to hold the same lock, or the guard may
	// repair what is just being removed. Nil: no lock.
	Lock func(ctx context.Context) (unlock func() error, err error)

	// Patience is how long the guard goes on, with at most four repairs a second,
	// while somebody else undoes each of them; zero: 5 minutes. Then it ends with
	// [ErrContested].
	Patience time.Duration

	// Repaired is told what each repair changed; nil: nobody is.
	Repaired func(changes []string)

	// Trouble is told of what the guard goes on in spite of; nil: nobody is. That
	// is a repair that does not succeed, which is tried again, and once in each
	// fight [ErrContested].
	Trouble func(err error)
}

// Run guards until ctx ends or the guard does, and always returns an error:
// that of ctx, [ErrUninstalled], [journal.ErrRevoked], [journal.ErrNotOwner],
// [ErrContested], or that of an Install whose fields are wrong.
//
// All paths are resolved on the calling thread, so it may run inside hostns.Do
// for as long as it likes. Files are read only after the name, size, mode, owner
// or time of one has changed. While nothing happens to 28 of them, it needs 2 ms
// of processor time a second (BenchmarkCNI7_Idle, in a process that does nothing
// else).
//
// What it does not see: a write that changes neither size nor time, such as
// through a memory map of a file on a tmpfs.
func (g Guard) Run(ctx context.Context) error {
	return fmt.Errorf("guard CNI: %w", g.run(ctx))
}

// guarding is a guard at work. It has no goroutine: whatever touches a path is
// done by Run's own.
type guarding struct {
	Guard
	seed  maphash.Seed
	seen  string            // what the folders looked like at the last look; empty: unknown
	known map[string]string // target: its hash, as the journal had it last
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
	g.Install.Warn = nil
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

// appearance describes what is guarded, at the cost of looking: any change of
// the node's owner or of a file changes it, and so does an uninstall.
func (r *guarding) appearance(ctx context.Context) string {
	owner, generation, err := r.Install.Journal.Owner()
	_, recorded, errOne := r.Install.Journal.Lookup(ctx, kindFile, r.one)
	return fmt.Sprintln(owner, generation, err, recorded, errOne, r.Install.appearance(ctx, r.seed))
}

// appearance describes what is in the guarded folders: any change of a file
// changes it. Of a folder only which one it is counts, and what starts with a
// dot does not: there are temporary files. However much is there, the description
// is short: what is described of the files is combined, in whatever order they come.
func (i Install) appearance(ctx context.Context, seed maphash.Seed) string {
	var b strings.Builder
	for _, dir := range []string{i.BinDir, i.ConfDir} {
		sum, n, err := appearanceIn(ctx, dir, seed)
		fmt.Fprintln(&b, dir, appearance(dir), sum, n, err)
	}
	return b.String()
}

func appearanceIn(ctx context.Context, dir string, seed maphash.Seed) (sum uint64, n int, err error) {
	f, err := input.OpenDir(dir)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	for name, err := range input.Names(f) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return 0, 0, err
		}
		if !strings.HasPrefix(name, ".") {
			sum ^= maphash.String(seed, name+"\n"+appearance(filepath.Join(dir, name)))
			n++
		}
	}
	return sum, n, nil
}

func ends(err error) bool {
	return errors.Is(err, journal.ErrRevoked) || errors.Is(err, journal.ErrNotOwner) || errors.Is(err, ErrContested)
}

// fail tells of an error, once, and lets it be tried again: some time later, or
// when something changes that the attempt itself has not. If something changed
// meanwhile, it may come of that: the next look will tell.
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
	if r.Trouble != nil {
		r.Trouble(fmt.Errorf("guard CNI: %w", err))
	}
}

// differs compares without the lock.
func (r *guarding) differs(ctx context.Context) (bool, error) {
	leave, err := r.enter(ctx)
	if err != nil {
		return false, err
	}
	j, err := r.survey(ctx)
	if err != nil {
		return false, errors.Join(err, leave())
	}
	defer j.close()
	if err := leave(); err != nil {
		return false, err
	}
	if len(j.changes()) > 0 {
		return true, nil
	}
	return false, r.remember(ctx, j)
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
	leave, err := r.enter(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	j, err := r.survey(ctx)
	if err != nil {
		return err
	}
	defer j.close()
	changes, found := j.changes(), j.found()
	if len(changes) == 0 {
		return r.remember(ctx, j)
	}
	err = j.apply(ctx)
	if err = errors.Join(err, r.remember(ctx, j)); err != nil {
		return err
	}
	if r.Repaired != nil {
		r.Repaired(changes)
	}
	return r.contested(found)
}

// contested says whether somebody else undoes each repair, and ends the guard
// when that has lasted too long.
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
