// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package gate waits for conditions that must hold before a node can be prepared: a file,
// a TCP port, kube-proxy's rules, or a function of the caller's.
//
//	g := gate.TCP("10.96.0.1:443")
//	g.Timeout = time.Minute
//	plan := bootstrap.Plan{Gates: []bootstrap.Step{{Name: "api-server-port", Gate: g}}, ...}
//	err := g.Wait(ctx) // or alone
//
// A [Gate] is a bootstrap.Gate: its Wait polls until the gate is open, tells a plan's
// bootstrap.Trace every five seconds what it waits for, and fails at its deadline, if it has
// one, with its last observation. It is made for Plan.Gates, which a plan waits for before it
// locks the node. Gates that ask a cluster are in package bootstrap/kube.
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
// For a state that a step can bring about itself, or that has an action to wait for it,
// such as cri.Loaded. Nor as a guarantee: a condition may cease to hold a moment later.
package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/printable"
	"github.com/slipway-dev/slipway/internal/waiting"
)

const (
	defaultTimeout = 5 * time.Minute
	defaultEvery   = 250 * time.Millisecond
	sayEvery       = 5 * time.Second
	longestLook    = 3 * time.Second
)

// Gate is something that a plan waits for.
type Gate struct {
	// Name describes it in one line, such as "the file /run/agent/ready".
	Name string

	// Probe looks once. Seen describes in one line why the gate is closed, such as "it
	// does not exist"; if empty, the gate is open. An error means that waiting does not
	// help. The context ends after three seconds.
	Probe func(ctx context.Context) (seen string, err error)

	// Where lists the host's namespaces in which a plan calls Probe, by their names in
	// /proc/PID/ns: "mnt" for a file, "net" for a port. If empty, Probe runs in those of
	// the process.
	Where []string

	// Timeout is how long Wait waits. Zero means five minutes; negative, until the context
	// ends.
	Timeout time.Duration

	// Every is the interval between calls of Probe. Zero means 250 ms.
	Every time.Duration
}

// OnHost returns Where. A gate changes nothing.
func (g Gate) OnHost() (namespaces []string, places map[string]string) { return g.Where, nil }

// Check returns what Wait would wait for, or nothing if the gate is open.
func (g Gate) Check(ctx context.Context) ([]string, error) {
	seen, err := g.look(ctx)
	if err != nil || seen == "" {
		return nil, err
	}
	return []string{"wait for " + printable.Line(g.Name+": "+seen)}, nil
}

// Wait waits until the gate is open. Its error has the last observation. After the
// timeout, it matches [context.DeadlineExceeded] and has the code "gate.timeout".
func (g Gate) Wait(ctx context.Context) error {
	timeout := cmp.Or(g.Timeout, defaultTimeout)
	start, seen := time.Now(), ""
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, tooLong(timeout))
		defer cancel()
	}
	waits := waiting.Wait{Every: sayEvery}
	defer waits.End()
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
		waits.For(ctx, g.Name+": "+printable.Line(seen), max(timeout-time.Since(start), 0))
		if failure.Sleep(ctx, cmp.Or(g.Every, defaultEvery)) != nil {
			return g.gaveUp(ctx, seen)
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

// look calls Probe with a short deadline, so that progress can be reported.
func (g Gate) look(ctx context.Context) (seen string, err error) {
	if g.Name == "" || g.Probe == nil {
		return "", errors.New("a gate needs a Name and a Probe: see File, TCP and KubeProxy")
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

// tooLong is the error after waiting this long.
type tooLong time.Duration

func (t tooLong) Error() string { return fmt.Sprintf("not within %v", time.Duration(t)) }

func (tooLong) Is(target error) bool { return target == context.DeadlineExceeded }
