// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"slices"
	"strings"
	"time"
)

type enter = func(context.Context, []string, func(context.Context) error) error

// host is a node that notes a plan's calls. The zero value is the node that the process runs
// on.
type host struct {
	note               func(what string) // may be nil
	away               bool              // the process is in one of its containers
	enterErr           error
	placesErr          error
	lockErr, unlockErr error
	wait               string // the waiting message of a lock
}

type insideKey struct{}

// inside names the namespaces in which a host was entered, such as "mnt+net".
func inside(ctx context.Context) string {
	names, _ := ctx.Value(insideKey{}).(string)
	return names
}

func (h *host) say(what ...string) {
	if h.note != nil {
		h.note(strings.Join(what, " "))
	}
}

func (h *host) Enter(ctx context.Context, namespaces []string, f func(context.Context) error) error {
	names := strings.Join(slices.Sorted(slices.Values(namespaces)), "+")
	h.say("enter", names)
	if h.enterErr != nil {
		return h.enterErr
	}
	return f(context.WithValue(ctx, insideKey{}, names))
}

func (h *host) IsHere() bool { return !h.away }

func (h *host) CheckPlaces(places map[string]string) error {
	for path, fstype := range places {
		h.say("place", path, fstype)
	}
	return h.placesErr
}

func (h *host) Lock(_ context.Context, _ string, waiting func(string, time.Duration)) (func() error, error) {
	h.say("lock")
	if h.wait != "" {
		waiting(h.wait, time.Minute)
	}
	if h.lockErr != nil {
		return nil, h.lockErr
	}
	return func() error { h.say("unlock"); return h.unlockErr }, nil
}

// unlocked is a host without a lock.
type unlocked struct{ *host }

func (unlocked) Lock(context.Context, string, func(string, time.Duration)) (func() error, error) {
	return nil, nil
}
