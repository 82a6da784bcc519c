// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"errors"
	"slices"
	"sort"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// Settings wants kernel values but no file: they last until the next boot. To set
// them without a plan, use [Kernel.Set].
type Settings struct {
	// Values are set in this order, except that those which change others along come
	// first; globs stand for the keys that exist at that time.
	Values []Setting
	// Kernel is the kernel whose values are set. The zero value is the calling
	// thread's.
	Kernel Kernel
}

// Wants lists the values. One that may fail, and is certain to, is not among them (see
// [Kernel.Diff]). A list that names a value twice has it once, as the last one says. It is
// an error if a key is invalid or a pattern could never match, and if IPv6 forwarding would
// cost a link its default route.
func (s Settings) Wants(context.Context) (ledger.Wants, error) {
	list, err := s.Kernel.list(linesOf("", s.Values))
	return ledger.Wants{List: list, Kinds: []*ledger.Kind{(&values{Kernel: s.Kernel}).kind()}}, err
}

func (k Kernel) list(as []target) ([]ledger.Want, error) {
	targets, err := expand(k.files(), as)
	list, _, routeErr := wanting{Kernel: k}.wants(inOrder(targets), nil)
	return list, errors.Join(err, routeErr)
}

// wanting makes wants of targets.
type wanting struct {
	Kernel
	again  string  // the file that sets the values again at each boot; empty: none does
	reload *reload // sets what this process may not; nil: none does
}

// wants returns what this process sets: first accept_ra of links that would lose a default
// route by targets or by beyond, then targets, those first that change others along. Late is
// what reload sets. The error says why IPv6 forwarding is not in the list.
func (w wanting) wants(targets []target, beyond []target) (list, late []ledger.Want, err error) {
	guards, err := w.guards(slices.Concat(w.changes(targets, w.writer()), beyond))
	direct := &values{Kernel: w.Kernel, wanted: map[Key]ledger.State{}, why: map[Key]string{}}
	reloaded := &values{Kernel: w.Kernel, wanted: direct.wanted, reload: w.reload}
	kind, kindLate, needs := direct.kind(), reloaded.kind(), []string(nil)
	for _, c := range guards {
		direct.why[c.Key] = c.why
		guard := ledger.Want{Kind: kind, Object: string(c.Key), To: state(c.Value), Unnamed: true}
		list, needs = append(list, guard), append(needs, guard.ID())
	}
	for _, t := range targets {
		now, lookErr := w.lookOrUnset(t.path)
		differs := lookErr == nil && !sameValue(t.path, now, t.Value)
		want := w.want(t, kind, needs)
		direct.wanted[keyOf(t.one())] = want.To
		switch {
		case w.tolerates(t, now, lookErr, w.writer()), differs && err != nil && t.forwards6():
		case w.reload != nil && differs && denied(w.files().Writable(t.path)):
			want.Kind = kindLate
			late = append(late, want)
		default:
			list = append(list, want)
		}
	}
	return list, late, err
}

// want is that of one target. If it turns IPv6 forwarding on, it needs the guards.
func (w wanting) want(t target, kind *ledger.Kind, guards []string) ledger.Want {
	want := ledger.Want{
		Kind: kind, Object: string(t.Key), To: wantedState(t.path, t.Value),
		Again: w.again, MayFail: t.IgnoreFailure, Unnamed: t.byGlob,
	}
	if t.forwards6() {
		want.Needs = guards
	}
	return want
}

func (w wanting) writer() writer { return w.reload != nil }

// inOrder puts first what changes others along.
func inOrder(targets []target) []target {
	drags := func(t target) bool { return sidePatterns(t.one()) != nil }
	sort.SliceStable(targets, func(i, j int) bool { return drags(targets[i]) && !drags(targets[j]) })
	return targets
}
