// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package gate waits for what has to be there before a node can be prepared: a file,
// a TCP port, kube-proxy's rules, or whatever a function of the caller's looks at.
//
//	g := gate.TCP("10.96.0.1:443")
//	g.Timeout = time.Minute
//	plan := bootstrap.Plan{Gates: []bootstrap.Step{{Name: "api-server-port", Action: g}}, ...}
//	err := g.Apply(ctx) // or alone
//
// A [Gate] is a bootstrap.Action that changes nothing: its Apply looks again and again
// until the gate is open, says every five seconds what it waits for, and fails at its
// deadline with what it saw last. It is made for Plan.Gates, which are waited for while the
// node is not locked. Those that ask a cluster are in package bootstrap/kube.
//
// # Where it looks
//
// In a plan, in the host's namespaces: see [Gate].Where. Alone, in the calling thread's.
//
// # What it needs
//
// [KubeProxy] needs Linux, and CAP_NET_ADMIN in the user namespace that owns the
// network namespace. It asks the kernel, and runs none of the host's tools. On other
// systems its error matches [errors.ErrUnsupported]. The others need nothing.
//
// # When not to use it
//
// For what a step can bring about itself, or what an action of its own can wait for,
// such as cri.Loaded. Nor as a promise: what a gate has seen may be gone a moment later.
package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/printable"
)

const (
	defaultTimeout = 5 * time.Minute
	defaultEvery   = 250 * time.Millisecond
	sayEvery       = 5 * time.Second
	longestLook    = 3 * time.Second
)

// Gate is something that a plan waits for.
type Gate struct {
	// Name names it in one line, such as "the file /run/agent/ready".
	Name string

	// Probe looks once. Seen says in one line what is wrong, such as "it is not
	// there"; empty: the gate is open. An error is one that does not pass by waiting.
	// The context ends after three seconds.
	Probe func(ctx context.Context) (seen string, err error)

	// Where are the host's namespaces in which a plan calls Probe, by their names in
	// /proc/PID/ns: "mnt" for a file, "net" for a port. None: those of the process.
	Where []string

	// Timeout is how long Apply waits. Zero means five minutes.
	Timeout time.Duration

	// Every is the time between two looks. Zero means 250 ms.
	Every time.Duration

	// Waiting is called while Apply waits, the first time at once and then every five
	// seconds, with what was last seen as the error. It may be nil: a plan's own
	// bootstrap.Trace is told, in any case.
	Waiting func(bootstrap.Wait)
}

// Namespaces returns Where.
func (g Gate) Namespaces() []string { return g.Where }

// Kinds returns none: a gate makes nothing that could be undone.
func (Gate) Kinds() []string { return nil }

// Waits returns how long Apply waits at most.
func (g Gate) Waits() time.Duration { return cmp.Or(g.Timeout, defaultTimeout) }

// Check says what Apply would wait for, or nothing if the gate is open.
func (g Gate) Check(ctx context.Context) ([]string, error) {
	seen, err := g.look(ctx)
	if err != nil || seen == "" {
		return nil, err
	}
	return []string{"wait for " + printable.Line(g.Name+": "+seen)}, nil
}

// Apply waits until the gate is open. Its error says what was last seen. If that took
// too long, it matches [context.DeadlineExceeded] and has the code "gate.timeout".
func (g Gate) Apply(ctx context.Context) error {
	timeout := cmp.Or(g.Timeout, defaultTimeout)
	start, said, tries := time.Now(), time.Time{}, 0
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, tooLong(timeout))
	defer cancel()
	seen := ""
	for {
		now, err := g.look(ctx)
		switch {
		case ctx.Err() == nil && err != nil:
			return err
		case ctx.Err() == nil && now == "":
			return nil
		case ctx.Err() == nil || seen == "":
			seen = cmp.Or(now, "nothing yet")
		}
		if ctx.Err() != nil {
			return g.gaveUp(ctx, seen)
		}
		if tries++; time.Since(said) >= sayEvery {
			g.say(ctx, bootstrap.Wait{For: g.Name, Tries: tries, Err: errors.New(printable.Line(seen)), Pause: (timeout - time.Since(start)).Round(time.Second)})
			said = time.Now()
		}
		select {
		case <-ctx.Done():
			return g.gaveUp(ctx, seen)
		case <-time.After(cmp.Or(g.Every, defaultEvery)):
		}
	}
}

func (g Gate) gaveUp(ctx context.Context, seen string) error {
	err := fmt.Errorf("wait for %s: last seen: %s: %w", g.Name, printable.Line(seen), context.Cause(ctx))
	if errors.Is(err, context.DeadlineExceeded) {
		return code.Wrap(code.GateTimeout, err)
	}
	return err
}

func (g Gate) say(ctx context.Context, w bootstrap.Wait) {
	bootstrap.Waiting(ctx, w)
	if g.Waiting != nil {
		g.Waiting(w)
	}
}

// look looks once, for a short time only, so that it can be said what is waited for.
func (g Gate) look(ctx context.Context) (seen string, err error) {
	if g.Name == "" || g.Probe == nil {
		return "", errors.New("a gate needs a name of what it waits for, and a function that looks: see File, TCP and KubeProxy")
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("wait for %s: %w", g.Name, context.Cause(ctx))
	}
	short, cancel := context.WithTimeoutCause(ctx, longestLook, errors.New("no answer"))
	defer cancel()
	if seen, err = g.Probe(short); err != nil {
		return "", fmt.Errorf("wait for %s: %w", g.Name, err)
	}
	return seen, nil
}

// tooLong is how long was waited.
type tooLong time.Duration

func (t tooLong) Error() string { return fmt.Sprintf("not within %v", time.Duration(t)) }

func (tooLong) Is(target error) bool { return target == context.DeadlineExceeded }
