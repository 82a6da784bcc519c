// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// tunnel makes a link and sets it up. If it begins nothing for a link that exists, what a
// failure left to be done is not recorded.
type tunnel struct {
	link   *link
	always bool // Begin is called for a link that exists too
}

type link struct{ made, up, broken bool }

func (tunnel) Kinds() []string { return []string{"acme/link"} }

func (a tunnel) Check(context.Context) (changes []string, err error) {
	if !a.link.made {
		changes = append(changes, "make acme0")
	}
	if !a.link.up {
		changes = append(changes, "set acme0 up")
	}
	return changes, nil
}

func (a tunnel) Apply(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if a.always || !a.link.made {
		j, e := journal.From(ctx), journal.Entry{Kind: "acme/link", Object: "acme0", After: journal.State{Type: "link"}}
		if err := j.Begin(ctx, e); err != nil {
			return err
		}
		a.link.made = true
		if err := j.Complete(ctx, e); err != nil {
			return err
		}
	}
	if a.link.broken {
		return errors.New("set acme0 up: no carrier")
	}
	a.link.up = true
	return nil
}

// remover removes the link.
type remover struct{ link *link }

func (remover) Kinds() []string          { return tunnel{}.Kinds() }
func (remover) Namespaces() []string     { return nil }
func (remover) Owns(journal.Entry) error { return nil }

func (h remover) Look(context.Context, *journal.Pass, journal.Entry) (journal.Undo, error) {
	if !h.link.made {
		return journal.Undo{}, nil
	}
	return journal.Undo{Change: "remove acme0", Run: func(context.Context) error { *h.link = link{}; return nil }}, nil
}

func TestConformanceCatchesAnUnrecordedRepair(t *testing.T) {
	for want, always := range map[string]bool{
		"": true,
		"the action breaks the contract: after an Apply that failed: Apply: " + bootstrap.ErrUnrecorded.Error() +
			": call Begin before each change, also one to an object that is recorded already": false,
	} {
		l := &link{}
		c := bootstraptest.Conformance{
			Action:   func() bootstrap.Action { return tunnel{l, always} },
			Handlers: []journal.Handler{remover{l}},
			Break:    func() (string, func()) { l.broken = true; return "acme0", func() { l.broken = false } },
		}
		require.Equal(t, want, verdictOf(t, c.Test))
	}
}
