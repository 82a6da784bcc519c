// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/waiting"
)

// enter calls f where the step's objects are, with the ledger's view of that side in its
// context.
func (w *walk) enter(ctx context.Context, s *Step, f func(context.Context) error) error {
	switch {
	case s.Local && w.plan.Host.Proc != "" && w.book != nil:
		book, err := w.local()
		if err != nil {
			return err
		}
		return f(ledger.With(ctx, book))
	case s.Local:
		return f(ctx)
	case s.Wants != nil:
		return w.plan.Host.Do(ctx, everywhere, f)
	}
	namespaces, places := s.onHost()
	if err := w.plan.Host.CheckPlaces(places); err != nil {
		return err
	}
	return w.plan.Host.Do(ctx, namespaces, f)
}

// local is the ledger's view of this side, which is a container.
func (w *walk) local() (*ledger.Book, error) {
	namespace, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return nil, fmt.Errorf("find out which container this is: %w", err)
	}
	return w.book.Local(namespace), nil
}

// learnKinds has the ledger know the kinds of all steps, for undoing their records. What a step
// cannot tell now is reported where it matters: as a record of an unknown kind.
func (w *walk) learnKinds(ctx context.Context) {
	if w.book == nil {
		return
	}
	isKnown := len(w.kinds) > 0 // from the look before
	for i := range w.plan.Steps {
		if s := &w.plan.Steps[i]; s.Wants != nil && !isKnown {
			_ = w.enter(ctx, s, func(ctx context.Context) error {
				_, err := w.wants(ctx, s)
				return err
			})
		}
	}
	w.book.Learn(slices.Collect(maps.Values(w.kinds))...)
	w.book.Learn(ledger.File(), ledger.Dir())
}

// changing calls f to change the node: with its lock held, and the ledger open. The report
// is kept. A plan that only acts in memory needs no lock.
func (w *walk) changing(ctx context.Context, may permission, f func(context.Context) error) (err error) {
	usesHost := func(s Step) bool {
		namespaces, _ := s.onHost()
		return s.Wants != nil && !s.Local || len(namespaces) > 0
	}
	if w.plan.Ledger == nil && !slices.ContainsFunc(w.plan.Steps, usesHost) {
		return w.inside(ctx, may, f)
	}
	unlock, err := w.lock(ctx)
	if err != nil {
		return w.report.fail(fmt.Errorf("take the node's lock: %w", err))
	}
	defer func() {
		if unlockErr := unlock(); unlockErr != nil {
			err = errors.Join(err, w.report.fail(fmt.Errorf("give back the node's lock: %w", unlockErr)))
		}
	}()
	return w.inside(ctx, may, func(ctx context.Context) error {
		err := f(ctx)
		if w.book == nil {
			return err
		}
		w.rest(ctx)
		w.report.Elapsed = time.Since(w.report.Start)
		if keepErr := w.book.SaveReport(ctx, w.report.kept()); keepErr != nil {
			err = errors.Join(err, w.report.fail(keepErr))
		}
		return err
	})
}

// lock takes the node's lock. Only root can write where that is by default: others have
// theirs beside the ledger.
func (w *walk) lock(ctx context.Context) (unlock func() error, err error) {
	host, owner := w.plan.Host, ""
	if l := w.plan.Ledger; l != nil {
		owner = l.Owner
		if host.LockFile == "" && os.Geteuid() > 0 && l.Dir != "" {
			host.LockFile = l.Dir + ".lock"
		}
	}
	return host.Lock(ctx, owner)
}

// permission asks the ledger whether this process may go on.
type permission func(*ledger.Book, context.Context) error

// inside calls f with the ledger open, if there is one, and lets this process in.
func (w *walk) inside(ctx context.Context, may permission, f func(context.Context) error) error {
	isIn := false
	err := w.plan.withBook(ctx, func(ctx context.Context, book *ledger.Book) error {
		w.book = book
		defer func() { w.book = nil }()
		err := may(book, ctx)
		if book != nil && errors.Is(err, fs.ErrNotExist) { // a container's image need not have the directory, which is the host's
			err = cmp.Or(w.plan.Host.CheckPlaces(map[string]string{w.plan.Ledger.File(): ""}), err)
		}
		if err != nil {
			return err
		}
		isIn = true
		if book != nil { // those that the look before has found, for what a killed run has begun
			book.Learn(slices.Collect(maps.Values(w.kinds))...)
		}
		w.identify()
		return f(ctx)
	})
	if err != nil && !isIn {
		w.report.fail(err)
	}
	return err
}

// identify tells the report for whom the plan runs.
func (w *walk) identify() {
	l := w.plan.Ledger
	if l == nil {
		return
	}
	w.report.Owner = l.Owner
	if l.AllAgents && w.reverts() {
		return
	}
	w.report.Agent = l.Agent
	if name, generation, err := w.book.Owner(); err == nil && name == l.Owner {
		w.report.Generation = generation
	}
}

// keepWithin is the time that a failure gets to be kept, also of a run whose own is over.
const keepWithin = 500 * time.Millisecond

// keepFailure does so for a run that has ended before it was to change anything. If it
// cannot be kept, the failure is told all the same. Another owner, who has come later, has
// the last word.
func (w *walk) keepFailure(ctx context.Context) {
	if w.plan.Ledger == nil || w.plan.validateAll() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(waiting.Silent(ctx)), keepWithin)
	defer cancel()
	why := w.report.Err
	if w.plan.withBook(ctx, func(ctx context.Context, book *ledger.Book) error { return book.MayApply(ctx) }) == nil {
		_ = w.changing(ctx, (*ledger.Book).MayApply, func(context.Context) error { return nil })
	}
	w.report.Err = why
}

// everywhere are the namespaces of steps with Wants.
var everywhere = []string{"mnt", "cgroup", "net", "uts", "ipc"}
