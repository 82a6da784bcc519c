// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/cniinstall"
)

// recorded is an Install with a journal but no plan.
type recorded struct {
	cniinstall.Install
	Journal *journal.Journal
}

func (r recorded) For(ctx context.Context, in cniinstall.Runtime, asked error) (placed recorded, err error) {
	placed.Journal = r.Journal
	placed.Install, err = r.Install.For(journal.With(ctx, r.Journal), in, asked)
	return placed, err
}

func (r recorded) Check(ctx context.Context) ([]string, error) {
	return r.Install.Check(journal.With(ctx, r.Journal))
}

func (r recorded) Apply(ctx context.Context) error {
	return r.Install.Apply(journal.With(ctx, r.Journal))
}

func (r recorded) Advise(ctx context.Context) ([]string, error) {
	return r.Install.Advise(journal.With(ctx, r.Journal))
}

func (r recorded) Revert(ctx context.Context) error {
	return r.Journal.Undo(ctx, cniinstall.Handler{ConfDir: r.ConfDir})
}

func (r recorded) CheckRevert(ctx context.Context) ([]string, error) {
	return r.Journal.CheckUndo(ctx, cniinstall.Handler{ConfDir: r.ConfDir})
}

// planOf is a plan in this process that applies the steps on the node, with a journal of its own.
func (n node) planOf(h cniinstall.Handler, steps ...bootstrap.Step) *bootstrap.Plan {
	h.ConfDir = n.conf
	return &bootstrap.Plan{
		Host:    hostns.Host{Here: true, LockFile: filepath.Join(n.root, "lock")},
		Journal: &journal.Node{Dir: n.state, Agent: "agent", NoOwner: true, Handlers: []journal.Handler{h}},
		Steps:   steps,
	}
}
