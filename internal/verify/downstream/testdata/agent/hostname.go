// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

const kindHostname = "acme/hostname"

// hostname is an action of this agent's own: the node has a name.
type hostname struct {
	name    string
	journal *journal.Journal
}

func (h hostname) Check(context.Context) ([]string, error) {
	now, err := os.Hostname()
	if err != nil || now == h.name {
		return nil, err
	}
	return []string{fmt.Sprintf("set the hostname to %s (is %s)", h.name, now)}, nil
}

func (h hostname) Apply(ctx context.Context) error {
	before, err := now()
	if err != nil || before.Value == h.name {
		return err
	}
	e := journal.Entry{Kind: kindHostname, Object: "hostname", Before: before, After: value(h.name), Boot: h.journal.Boot()}
	if err := h.journal.Begin(ctx, e); err != nil {
		return err
	}
	if err := syscall.Sethostname([]byte(h.name)); err != nil {
		return err
	}
	return h.journal.Complete(ctx, e)
}

func now() (journal.State, error) {
	name, err := os.Hostname()
	return value(name), err
}

func value(v string) journal.State { return journal.State{Type: "value", Value: v} }

// hostnames undoes what hostname has recorded.
type hostnames struct{}

func (hostnames) Kinds() []string { return []string{kindHostname} }

func (hostnames) Owns(e journal.Entry) error {
	if e.Object != "hostname" {
		return fmt.Errorf("%q is not a hostname", e.Object)
	}
	return nil
}

func (hostnames) Look(_ context.Context, _ *journal.Pass, e journal.Entry) (journal.Undo, error) {
	now, err := now()
	switch {
	case err != nil || now.Same(e.Before):
		return journal.Undo{}, err
	case !e.Left(now):
		return journal.Undo{}, fmt.Errorf("the hostname is %w, so it is kept %s", journal.ErrChanged, now.Value)
	}
	return journal.Undo{
		Change: "set the hostname back to " + e.Before.Value,
		Run:    func(context.Context) error { return syscall.Sethostname([]byte(e.Before.Value)) },
	}, nil
}
