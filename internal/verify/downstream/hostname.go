// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"fmt"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

const kindHostname = "acme/hostname"

// host gets and sets the node's name.
type host struct {
	get func() (string, error)
	set func(name string) error
}

// hostname is the agent's own action, with its own handler: it names the node.
type hostname struct {
	name string
	host host
}

func (h hostname) Check(context.Context) ([]string, error) {
	now, err := h.host.get()
	if err != nil || now == h.name {
		return nil, err
	}
	return []string{fmt.Sprintf("set the hostname to %s (is %s)", h.name, now)}, nil
}

func (h hostname) Apply(ctx context.Context) error {
	before, err := h.host.get()
	if err != nil || before == h.name {
		return err
	}
	e := journal.Entry{Kind: kindHostname, Object: "hostname", Before: value(before), After: value(h.name), Boot: journal.From(ctx).Boot()}
	if err := journal.From(ctx).Begin(ctx, e); err != nil {
		return err
	}
	if err := h.host.set(h.name); err != nil {
		return err
	}
	return journal.From(ctx).Complete(ctx, e)
}

func value(v string) journal.State { return journal.State{Type: "value", Value: v} }

// Kinds and Namespaces declare the action's records, and where it acts.
func (hostname) Kinds() []string      { return hostnames{}.Kinds() }
func (hostname) Namespaces() []string { return hostnames{}.Namespaces() }

// hostnames undoes the changes that hostname has recorded.
type hostnames struct{ host }

func (hostnames) Kinds() []string { return []string{kindHostname} }

func (hostnames) Namespaces() []string { return nil } // this process's

func (hostnames) Owns(e journal.Entry) error {
	if e.Object != "hostname" {
		return fmt.Errorf("%q is not a hostname", e.Object)
	}
	return nil
}

func (h hostnames) Look(_ context.Context, _ *journal.Pass, e journal.Entry) (journal.Undo, error) {
	name, err := h.get()
	now := value(name)
	switch {
	case err != nil || now.Same(e.Before):
		return journal.Undo{}, err
	case !e.MatchesAfter(now):
		return journal.Undo{}, fmt.Errorf("the hostname is %w, so it is kept %s", journal.ErrChanged, now.Value)
	}
	return journal.Undo{
		Change: "set the hostname back to " + e.Before.Value,
		Run:    func(context.Context) error { return h.set(e.Before.Value) },
	}, nil
}
