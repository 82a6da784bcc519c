// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package waiting says what is waited for: to the program, if it listens, and otherwise,
// once it has lasted ten seconds, on standard error. It is the only place of the library that
// writes there. Of waits within each other, such as that for a step, for its request and for
// a lock, only the one that began last is told.
package waiting

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/printable"
)

const (
	patience = 10 * time.Second
	longest  = 5 * time.Minute // from one line on standard error to the next
)

// Listener is told of a wait, and the longest that it may still take, zero if that is not
// known. It gets the context of the wait. Of one context, calls do not overlap.
type Listener func(ctx context.Context, what string, atMost time.Duration)

type key struct{}

// scope is what a context carries: who listens, and the waits that belong to it.
type scope struct {
	listener Listener // nil: there is none
	isSilent bool     // nothing is said on standard error
	waits    *waits
}

// waits are those that have not ended, in the order in which they began.
type waits struct {
	mu  sync.Mutex
	all []*Wait
}

// With returns a context whose waits are told to listener, one at a time, or as those of ctx
// are if it is nil. If it only records them, they are said on standard error all the same.
func With(ctx context.Context, listener Listener, records bool) context.Context {
	t := from(ctx)
	if listener != nil {
		t.listener, t.isSilent = listener, !records
	}
	return context.WithValue(ctx, key{}, t)
}

// Silent returns a context whose waits are not told.
func Silent(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, scope{nil, true, &waits{}})
}

// from returns what ctx carries, or what it could.
func from(ctx context.Context) scope {
	t, ok := ctx.Value(key{}).(scope)
	if !ok {
		t.waits = &waits{}
	}
	return t
}

// Wait is one wait. The zero value has not begun.
type Wait struct {
	// Every is how often a listener is told. Zero means ten seconds.
	Every time.Duration

	scope
	ctx      context.Context
	what     string
	begun    time.Time
	end      time.Time // zero: not known
	isKnown  bool      // to the listener
	nextLine time.Time // when it is next said on standard error
	timer    *time.Timer
}

// On begins a wait that is mostly too short to be told of: that comes after ten seconds. Waits
// with the returned context are within it.
func On(ctx context.Context, what string) (context.Context, *Wait) {
	w := &Wait{}
	w.begin(ctx, what)
	return context.WithValue(ctx, key{}, w.scope), w
}

// For begins the wait, or changes what it is for. A listener is told at the first call.
func (w *Wait) For(ctx context.Context, what string, atMost time.Duration) {
	if w.timer == nil {
		w.begin(ctx, what)
	}
	w.waits.mu.Lock()
	defer w.waits.mu.Unlock()
	w.what, w.end = what, time.Time{}
	if atMost > 0 {
		w.end = time.Now().Add(atMost)
	}
	if !w.isKnown && w.isLast() {
		w.notify()
	}
}

func (w *Wait) begin(ctx context.Context, what string) {
	w.ctx, w.scope, w.what, w.begun = ctx, from(ctx), what, time.Now()
	w.nextLine = w.begun.Add(patience)
	w.waits.mu.Lock()
	defer w.waits.mu.Unlock()
	w.waits.all = append(w.waits.all, w)
	w.timer = time.AfterFunc(w.every(), w.again)
}

func (w *Wait) every() time.Duration { return cmp.Or(w.Every, patience) }

// isLast reports whether no wait is within it.
func (w *Wait) isLast() bool { return len(w.waits.all) > 0 && w.waits.all[len(w.waits.all)-1] == w }

// End ends the wait. Nothing is told of it afterwards.
func (w *Wait) End() {
	if w.timer == nil {
		return
	}
	w.waits.mu.Lock()
	defer w.waits.mu.Unlock()
	w.timer.Stop()
	w.waits.all = slices.DeleteFunc(w.waits.all, func(other *Wait) bool { return other == w })
}

// again tells of the wait, unless it has ended meanwhile.
func (w *Wait) again() {
	w.waits.mu.Lock()
	defer w.waits.mu.Unlock()
	if !slices.Contains(w.waits.all, w) {
		return
	}
	if w.isLast() {
		w.notify()
		w.print()
	}
	w.timer.Reset(w.every())
}

func (w *Wait) notify() {
	w.isKnown = true
	if w.listener != nil {
		w.listener(Silent(w.ctx), w.what, w.left()) // what it does itself is not told to it
	}
}

// left is the longest that the wait may still take; 0: that is not known.
func (w *Wait) left() time.Duration {
	if w.end.IsZero() {
		return 0
	}
	return max(time.Until(w.end).Round(time.Second), time.Second)
}

// print says on standard error what is waited for, at intervals that double.
func (w *Wait) print() {
	now := time.Now()
	if w.isSilent || now.Add(time.Second).Before(w.nextLine) { // timers are not exact
		return
	}
	lasted, left := now.Sub(w.begun), ""
	w.nextLine = now.Add(min(lasted, longest))
	if w.left() > 0 {
		left = fmt.Sprintf(", at most %v more", w.left())
	}
	fmt.Fprintf(os.Stderr, "slipway: waiting for %s (%v so far%s)\n", printable.Line(w.what), lasted.Round(time.Second), left)
}
