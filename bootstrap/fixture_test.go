// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

var errBoom = errors.New("boom")

type runner = func(*bootstrap.Plan, context.Context) (*bootstrap.Report, error)

// statuses formats a report's results as "step status", in order.
func statuses(r *bootstrap.Report) string {
	var lines []string
	for _, result := range r.Results {
		lines = append(lines, result.Step+" "+string(result.Status))
	}
	return strings.Join(lines, "\n")
}

func lines(l ...string) string { return strings.Join(l, "\n") }

// todo is an action with one change to make.
func todo() *bootstraptest.Script {
	return &bootstraptest.Script{Changes: []string{"do it"}}
}

func broken() *bootstraptest.Script {
	return &bootstraptest.Script{Changes: []string{"do it"}, Errs: map[string][]error{"apply": {errBoom}, "wait": {errBoom}}}
}

func unreadable() *bootstraptest.Script {
	return &bootstraptest.Script{Errs: map[string][]error{"check": {errBoom, errBoom}}} // an apply checks twice
}

func step(name string, a bootstrap.Action, after ...string) bootstrap.Step {
	return bootstrap.Step{Name: name, Action: a, After: after}
}

func gate(name string, g bootstrap.Gate) bootstrap.Step { return bootstrap.Step{Name: name, Gate: g} }

func wants(name string, w ledger.Wanter, after ...string) bootstrap.Step {
	return bootstrap.Step{Name: name, Wants: w, After: after}
}

func optional(s bootstrap.Step) bootstrap.Step { s.Optional = true; return s }

func skipped(s bootstrap.Step) bootstrap.Step { s.Skip = "asked for"; return s }

// file wants an empty file, with the directories that lead to it.
type file struct{ path string }

func (f file) Wants(context.Context) (ledger.Wants, error) {
	list, err := ledger.DirWants(filepath.Dir(f.path), 0o755)
	return ledger.Wants{List: append(list, ledger.FileWant(f.path, 0o644, nil))}, err
}

// shelf has objects in memory, each of which is a value.
type shelf struct {
	name   string
	values map[string]string
	fail   map[string]error // of reads, by object
	denied error
	needed string // why an object cannot go
	inUse  error  // likewise
	stuck  bool   // writes change nothing
	at     string
	note   func(ctx context.Context, what string)
}

// want wants values, each as "OBJECT=VALUE".
func (s *shelf) want(values ...string) ledger.Wanter { return shelfWants{s, values} }

type shelfWants struct {
	*shelf
	values []string
}

func (s shelfWants) Wants(context.Context) (wants ledger.Wants, err error) {
	for _, v := range s.values {
		object, value, ok := strings.Cut(v, "=")
		if !ok {
			return wants, errBoom
		}
		wants.List = append(wants.List, ledger.Want{Kind: s.kind(), Object: object, To: ledger.State{Type: "value", Value: value}})
	}
	return wants, nil
}

func (s *shelf) kind() *ledger.Kind {
	k := &ledger.Kind{
		Name: s.name,
		Read: func(ctx context.Context, object string) (ledger.State, error) {
			s.say(ctx, "read "+object)
			value, ok := s.values[object]
			if !ok {
				return ledger.State{}, s.fail[object]
			}
			return ledger.State{Type: "value", Value: value}, s.fail[object]
		},
		Write: func(ctx context.Context, object string, to ledger.State) error {
			s.say(ctx, "write "+object)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case s.stuck:
			case to.IsZero():
				delete(s.values, object)
			default:
				s.values[object] = to.Value
			}
			return nil
		},
		Keeps:      func(context.Context, string, ledger.StateAfter) (string, error) { return s.needed, s.inUse },
		Permission: func(context.Context, string) error { return s.denied },
	}
	if s.at != "" {
		k.Place = func(string) (string, string) { return s.at, "" }
	}
	return k
}

func (s *shelf) say(ctx context.Context, what string) {
	if s.note != nil {
		s.note(ctx, what)
	}
}

// newShelf returns a shelf whose kind has the name.
func newShelf(name string) *shelf {
	return &shelf{name: name, values: map[string]string{}, fail: map[string]error{}}
}

// node is a ledger in dir; owner may be empty.
func node(dir, owner string) *ledger.Ledger {
	return &ledger.Ledger{Dir: dir, Agent: "agent", Owner: owner, NoOwner: owner == ""}
}

// on is a plan of the steps, on the machine, with a lock of its own beside the ledger.
func on(l *ledger.Ledger, steps ...bootstrap.Step) *bootstrap.Plan {
	return &bootstrap.Plan{Host: hostns.Host{Here: true, LockFile: l.Dir + ".lock", LockTimeout: -1}, Ledger: l, Steps: steps}
}

// asked calls f with the open ledger in dir.
func asked(t *testing.T, dir string, f func(*ledger.Book)) {
	t.Helper()
	book, err := node(dir, "").Open(t.Context())
	require.NoError(t, err)
	defer book.Close()
	f(book)
}

// ownerIn returns the node's owner according to the ledger in dir.
func ownerIn(t *testing.T, dir string) (owner string) {
	t.Helper()
	asked(t, dir, func(b *ledger.Book) {
		var err error
		owner, _, err = b.Owner()
		require.NoError(t, err)
	})
	return owner
}

// kept returns the last run's report.
func kept(t *testing.T, dir string) *bootstrap.Report {
	t.Helper()
	report := &bootstrap.Report{}
	asked(t, dir, func(b *ledger.Book) {
		all, err := b.Agents(t.Context())
		require.NoError(t, err)
		if len(all) > 0 && all[0].Report != nil {
			require.NoError(t, report.UnmarshalJSON(all[0].Report))
		}
	})
	return report
}

func byStep(r *bootstrap.Report) map[string]bootstrap.Status {
	m := map[string]bootstrap.Status{}
	for _, result := range r.Results {
		m[result.Step] = result.Status
	}
	return m
}

// locked calls f while another process has the plan's lock.
func locked(t *testing.T, p *bootstrap.Plan, f func()) {
	t.Helper()
	unlock, err := p.Host.Lock(t.Context(), "another process")
	require.NoError(t, err)
	defer func() { require.NoError(t, unlock()) }()
	f()
}
