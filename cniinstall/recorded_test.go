// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/testledger"
)

// step is the name of the step in which a recorded Install is applied.
const step = "test"

// recorded is an Install with a ledger but no plan.
type recorded struct {
	cniinstall.Install
	Book *ledger.Book
}

// with returns a context as a plan gives it.
func (r recorded) with(ctx context.Context) context.Context { return ledger.With(ctx, r.Book) }

func (r recorded) resolveDirs(ctx context.Context, in cri.CNI, asked error) (resolved recorded, err error) {
	resolved.Book = r.Book
	resolved.Install, err = forRuntime(r.with(ctx), r.Install, in, asked)
	return resolved, err
}

// forRuntime is an installation for a runtime that was asked.
func forRuntime(ctx context.Context, i cniinstall.Install, in cri.CNI, asked error) (cniinstall.Install, error) {
	i.Runtime, i.RuntimeErr = in, asked
	return i.ResolveDirs(ctx)
}

func (r recorded) look(ctx context.Context) (look ledger.Outcome, err error) {
	wants, err := r.Wants(r.with(ctx))
	if err == nil {
		look, err = r.Book.Check(r.with(ctx), step, wants)
		err = errors.Join(err, look.Denied)
	}
	return look, err
}

func (r recorded) Check(ctx context.Context) ([]string, error) {
	if r.Book == nil {
		return r.Install.Check(ctx)
	}
	look, err := r.look(ctx)
	return look.Changes, err
}

func (r recorded) apply(ctx context.Context) (done ledger.Outcome, err error) {
	wants, err := r.Wants(r.with(ctx))
	if err == nil {
		done, err = r.Book.Apply(r.with(ctx), step, wants)
	}
	return done, err
}

func (r recorded) Apply(ctx context.Context) error {
	if r.Book == nil {
		return r.Install.Apply(ctx)
	}
	_, err := r.apply(ctx)
	return err
}

func (r recorded) Advise(ctx context.Context) ([]string, error) {
	return r.Install.Advise(r.with(ctx))
}

func (r recorded) Revert(ctx context.Context) error {
	undone, err := r.Book.Undo(r.with(ctx), nil)
	return failure(undone, err)
}

func (r recorded) CheckRevert(ctx context.Context) (changes []string, err error) {
	would, err := r.Book.CheckUndo(r.with(ctx), nil)
	return lines(would), failure(would, err)
}

// failure leaves out what stays since it is needed, which is advice in a plan.
func failure(undone []ledger.Undone, err error) error {
	if err == nil {
		return nil
	}
	var errs []error
	for _, u := range undone {
		if u.Err == nil || errors.Is(u.Err, ledger.ErrNeeded) {
			continue
		}
		errs = append(errs, u.Err)
	}
	if len(undone) > 0 {
		return errors.Join(errs...)
	}
	return err
}

// lines lists what an undoing changes, without the backups, which are moved.
func lines(undone []ledger.Undone) (changes []string) {
	for _, u := range undone {
		if u.Change != "" && u.Err == nil && !strings.Contains(u.Change, "wants it too") && !strings.Contains(filepath.Base(u.Object), "_bak") {
			changes = append(changes, u.Change)
		}
	}
	return changes
}

// book opens the node's ledger, as another process would.
func (n node) book(u cniinstall.Uninstall) *ledger.Book {
	u.ConfDir = n.conf
	return testledger.OpenFor(n.t, n.state, "agent", u.Kinds()...)
}

// undo undoes everything in another process.
func (n node) undo(u cniinstall.Uninstall) ([]string, error) {
	undone, err := n.book(u).Undo(n.t.Context(), nil)
	return lines(undone), failure(undone, err)
}

// planOf is a plan in this process that applies the steps on the node, with a ledger of its own.
func (n node) planOf(u cniinstall.Uninstall, steps ...bootstrap.Step) *bootstrap.Plan {
	u.ConfDir = n.conf
	return &bootstrap.Plan{
		Host:   hostns.Host{Here: true, LockFile: filepath.Join(n.root, "lock")},
		Ledger: &ledger.Ledger{Dir: n.state, Agent: "agent", NoOwner: true, Kinds: u.Kinds()},
		Steps:  steps,
	}
}
