// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package neighbours

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/durable"
)

// published records files of an agent's own action.
var published = journal.Files{Kind: "published"}

// publish is an action from outside the library: a file with its content.
type publish struct {
	*site
	path    string
	content []byte
}

func (p *publish) Kinds() []string      { return published.Kinds() }
func (p *publish) Namespaces() []string { return published.Namespaces() }

func (p *publish) state() journal.State { return journal.FileState(p.content, 0o644) }

// met reports whether the file is as wanted, and recorded as such.
func (p *publish) met(ctx context.Context) (bool, error) {
	now, err := journal.Snapshot(ctx, p.path)
	if err != nil || !now.Same(p.state()) {
		return false, err
	}
	e, known, err := journal.From(ctx).Lookup(ctx, published.Kind+"/file", p.path)
	return err == nil && (!known || e.Done), err
}

func (p *publish) wish(met bool) journal.Wish {
	return journal.Wish{Entry: journal.Entry{Kind: published.Kind + "/file", Object: p.path, After: p.state()}, Met: met}
}

func (p *publish) Check(ctx context.Context) (changes []string, err error) {
	met, err := p.met(ctx)
	if err != nil {
		return nil, err
	}
	if !met {
		changes = []string{"write " + p.path}
	}
	more, err := journal.From(ctx).CheckWishes(ctx, p.wish(met))
	return append(changes, more...), err
}

func (p *publish) Apply(ctx context.Context) error {
	j := journal.From(ctx)
	met, err := p.met(ctx)
	if err == nil && !met {
		err = p.write(ctx, j)
	}
	if err != nil {
		return err
	}
	return j.Wish(ctx, p.wish(true))
}

func (p *publish) write(ctx context.Context, j *journal.Journal) error {
	if err := published.MkdirAll(ctx, j, filepath.Dir(p.path), 0o755); err != nil {
		return err
	}
	p.point()
	if err := published.Begin(ctx, j, p.path, p.state()); err != nil {
		return err
	}
	p.point()
	if err := errors.Join(durable.Sweep(filepath.Dir(p.path)), durable.WriteFile(p.path, 0o644, p.content)); err != nil {
		return err
	}
	p.point()
	return published.Complete(ctx, j, p.path)
}
