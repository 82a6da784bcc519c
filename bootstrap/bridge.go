// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"errors"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// wanting is the action of a step that has Wants.
type wanting struct {
	step  string
	wants ledger.Wanter
	local bool
}

// bridged returns the plan with an action in each step that has Wants.
func (p *Plan) bridged() *Plan {
	b := *p
	b.Steps = slices.Clone(p.Steps)
	for i, s := range b.Steps {
		if s.Wants != nil {
			b.Steps[i].Action = wanting{s.Name, s.Wants, s.Local}
		}
	}
	return &b
}

// Namespaces are all that can be entered.
func (a wanting) Namespaces() []string {
	if a.local {
		return nil
	}
	return []string{"mnt", "net", "cgroup", "uts", "ipc"}
}

func (a wanting) Check(ctx context.Context) ([]string, error) {
	book := ledger.From(ctx)
	if book == nil {
		return nil, errors.New("the plan has no ledger")
	}
	wants, err := a.wants.Wants(ctx)
	if err != nil {
		return nil, err
	}
	look, err := book.Check(ctx, a.step, wants)
	return look.Changes, err
}

func (a wanting) Apply(ctx context.Context) error {
	wants, err := a.wants.Wants(ctx)
	if err != nil {
		return err
	}
	_, err = ledger.From(ctx).Apply(ctx, a.step, wants)
	return err
}

func (a wanting) Advise(ctx context.Context) (advice []string, err error) {
	if ledger.From(ctx) == nil {
		return nil, nil
	}
	wants, err := a.wants.Wants(ctx)
	if err != nil {
		return nil, err
	}
	look, err := ledger.From(ctx).Check(ctx, a.step, wants)
	if own, ok := a.wants.(interface {
		Advise(context.Context) ([]string, error)
	}); ok && err == nil {
		advice, err = own.Advise(ctx)
	}
	return append(look.Advice, advice...), err
}

func (a wanting) CheckRevert(ctx context.Context) (changes []string, err error) {
	undone, _ := ledger.From(ctx).CheckUndo(ctx, a.undo()) // what stays is Revert's error
	return changed(undone), nil
}

func (a wanting) Revert(ctx context.Context) error {
	_, err := ledger.From(ctx).Undo(ctx, a.undo())
	return err
}

func (a wanting) undo() ledger.Undo { return ledger.Undo{Steps: []string{a.step}} }

// changed lists the changes of an undoing.
func changed(undone []ledger.Undone) (changes []string) {
	for _, u := range undone {
		if u.Err == nil && u.Change != "" {
			changes = append(changes, u.Change)
		}
	}
	return changes
}

// withBook calls f with the plan's ledger opened inside the host, if it has one. The kinds
// of its steps are known.
func (p *Plan) withBook(ctx context.Context, f func(context.Context) error) (err error) {
	if p.Ledger == nil {
		return f(ctx)
	}
	var book *ledger.Book
	if err := p.enter(ctx, []string{"mnt"}, func(ctx context.Context) (err error) {
		book, err = p.Ledger.Open(ctx)
		return err
	}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	ctx = ledger.With(ctx, book)
	for _, s := range p.Steps {
		if s.Wants == nil {
			continue
		}
		err := p.enter(ctx, wanting{local: s.Local}.Namespaces(), func(ctx context.Context) error {
			wants, _ := s.Wants.Wants(ctx) // its step says what is wrong
			for _, w := range wants.List {
				book.Learn(w.Kind)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return f(ctx)
}

// undoLedger undoes everything of the ledger's agent.
func (w *walk) undoLedger(ctx context.Context, dryRun bool) error {
	return w.plan.withBook(ctx, func(ctx context.Context) error {
		book, r := ledger.From(ctx), Result{Step: "ledger", Status: Unchanged}
		err := w.plan.enter(ctx, wanting{}.Namespaces(), func(ctx context.Context) (err error) {
			var undone []ledger.Undone
			r.Status = Changed
			if dryRun {
				r.Status = WouldChange
				undone, err = book.CheckUndo(ctx, ledger.Undo{})
			} else {
				undone, err = book.Undo(ctx, ledger.Undo{})
			}
			r.Changes = changed(undone)
			return err
		})
		switch {
		case err != nil:
			err = newStepError(r.Step, string(w.op), err)
			r.Status, r.Err = Failed, err
		case len(r.Changes) == 0:
			r.Status = Unchanged
		}
		w.done(ctx, r)
		return err
	})
}
