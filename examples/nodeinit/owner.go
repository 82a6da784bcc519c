// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/flock"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/internal/record"
)

// ownerBook is the record of who brought the node to its state last, such as a
// pod's UID. In a rolling update the older pod's uninstall may come after the
// newer one's apply, and must then leave the node alone.
const ownerBook = "owner"

// errNotOwner ends an uninstall of who is not the last to have applied.
var errNotOwner = errors.New("somebody else has applied since")

// lock is the node's: one run at a time. Under it, a run that changes the node
// becomes its owner.
func (a *app) lock() func(context.Context) (func() error, error) {
	return a.lockAnd(func() error {
		book, err := record.Open(a.stateDir, ownerBook)
		if err != nil {
			return err
		}
		return book.SetOwner(a.owner)
	})
}

// undoLock is the node's lock for who may undo: the last owner.
func (a *app) undoLock() func(context.Context) (func() error, error) {
	return a.lockAnd(a.notOwner)
}

// notOwner is errNotOwner if somebody else has applied last. It runs on the
// host.
func (a *app) notOwner() error {
	book, err := record.Open(a.stateDir, ownerBook)
	if err != nil {
		return err
	}
	if owner, generation := book.Owner(); generation > 0 && owner != a.owner {
		return fmt.Errorf("%w: the last was %s (this is %s); nothing is undone", errNotOwner, owner, a.owner)
	}
	return nil
}

// refusal is why this run may not undo anything; nil: it may.
func (a *app) refusal(ctx context.Context) error {
	return a.hostDo(ctx, hostns.Mount, func(context.Context) error { return a.notOwner() })
}

// mine reports whether nobody else has applied last.
func (a *app) mine(ctx context.Context) (bool, error) {
	if a.stateDir == "" {
		return true, nil
	}
	err := a.refusal(ctx)
	if errors.Is(err, errNotOwner) {
		return false, nil
	}
	return err == nil, err
}

// refuse reports every step as skipped, for the reason why. That somebody else
// has applied since is no failure.
func refuse(p *bootstrap.Plan, ctx context.Context, why error) (*bootstrap.Report, error) {
	report := &bootstrap.Report{}
	for _, s := range slices.Backward(p.Steps) {
		r := bootstrap.Result{Step: s.Name, Status: bootstrap.Skipped, Err: &bootstrap.StepError{Step: s.Name, Op: "revert", Err: why}}
		report.Results = append(report.Results, r)
		p.Trace.StepDone(ctx, r)
	}
	if errors.Is(why, errNotOwner) {
		return report, nil
	}
	return report, why
}

// wouldUndo is undo's dry run.
func (a *app) wouldUndo(p *bootstrap.Plan, ctx context.Context) (*bootstrap.Report, error) {
	if err := a.refusal(ctx); err != nil {
		return refuse(p, ctx, err)
	}
	return p.CheckRevert(ctx)
}

// plainLock is the node's lock and nothing else.
func (a *app) plainLock() func(context.Context) (func() error, error) {
	return a.lockAnd(func() error { return nil })
}

func (a *app) lockAnd(then func() error) func(context.Context) (func() error, error) {
	if a.stateDir == "" {
		return nil
	}
	file := a.lockFile()
	return func(ctx context.Context) (unlock func() error, err error) {
		var release func() error
		err = a.hostDo(ctx, hostns.Mount, func(ctx context.Context) error {
			if release, err = file.Lock(ctx); err != nil {
				return err
			}
			if err := then(); err != nil {
				return errors.Join(err, release())
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		return func() error {
			return errors.Join(a.hostDo(context.WithoutCancel(ctx), hostns.Mount, a.forgetOwner), release())
		}, nil
	}
}

// lockFile is the node's lock, for who is on the host already.
func (a *app) lockFile() flock.File {
	file := flock.File{Path: filepath.Join(a.stateDir, "lock"), Timeout: a.lockTimeout, Owner: a.owner}
	if file.Timeout == 0 {
		file.Timeout = -1 // not at all; there zero is the default
	}
	return file
}

// undo runs a plan backwards, if this run is the owner's and there is anything
// recorded at all.
func (a *app) undo(p *bootstrap.Plan, ctx context.Context) (*bootstrap.Report, error) {
	recorded, err := a.recorded(ctx)
	if err != nil {
		return p.Fail(ctx, p.Steps[0].Name, err)
	}
	if !recorded {
		return p.CheckRevert(ctx) // nothing to lock, and nothing to do
	}
	if err := a.refusal(ctx); err != nil {
		return refuse(p, ctx, err)
	}
	p.Lock = a.undoLock()
	report, err := p.Revert(ctx)
	if errors.Is(err, errNotOwner) {
		a.logger().Warn(oneLine(err.Error()))
		return report, nil
	}
	return report, errors.Join(err, a.othersRecords(ctx))
}

// recorded reports whether the state directory is there.
func (a *app) recorded(ctx context.Context) (there bool, err error) {
	err = a.hostDo(ctx, hostns.Mount, func(context.Context) error {
		_, err := os.Stat(a.stateDir)
		if there = err == nil; errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return there, err
}

// forgetOwner ends the ownership when nothing else is recorded (any more).
func (a *app) forgetOwner(context.Context) error {
	books, err := a.books()
	if err != nil || len(books) != 1 || books[0] != ownerBook {
		return err
	}
	book, err := record.Open(a.stateDir, ownerBook)
	if err != nil {
		return err
	}
	return book.Forget()
}

// othersRecords is an error if something is recorded that belongs to no step
// of this program: the one that recorded it can undo it.
func (a *app) othersRecords(ctx context.Context) error {
	return a.hostDo(ctx, hostns.Mount, func(context.Context) error {
		books, err := a.books()
		foreign := slices.DeleteFunc(books, knownBook)
		if err != nil || len(foreign) == 0 {
			return err
		}
		return fmt.Errorf("not undone, since another program recorded it in %s: %s", a.stateDir, strings.Join(foreign, ", "))
	})
}

// books names the records in the state directory.
func (a *app) books() (names []string, err error) {
	paths, err := filepath.Glob(filepath.Join(a.stateDir, "*.json"))
	for _, path := range paths {
		names = append(names, strings.TrimSuffix(filepath.Base(path), ".json"))
	}
	return names, err
}

// knownBook reports whether a step of the plan keeps the record.
func knownBook(name string) bool {
	switch name {
	case ownerBook, "bpffs", "cgroup", "cni", "config", "hostpath":
		return true
	}
	return strings.HasPrefix(name, "sysctl")
}
