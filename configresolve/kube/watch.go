// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/internal/drift"
)

// Watch resolves r and calls report with the result, and again whenever the result
// differs: in a value, or in a value's source. It returns the error of ctx when
// that ends, the error of report if there is one, and the error of the very first
// resolution if that fails.
//
// It holds a watch on each object that the sources of this package need, and
// requests nothing else from the API server: a change costs no request. Changes
// during an outage of the API server are reported within a minute or two after it
// has ended. If the custom resource is installed later, it is read from then on,
// and so are node configs that select the node once its labels have changed.
// Several changes at the same time may be combined into one report.
//
// Besides the verbs that the sources need, the ServiceAccount needs list and watch
// on the same objects, and on the definition of the custom resource. If access to
// the definition is denied and the custom resource is not installed, Watch looks
// for the resource every minute or two. At directories and files among the sources it
// looks every second, as [configresolve.Watch] does. Other sources are read again for
// each report, but a change in them causes none. No goroutine is left when Watch
// returns.
func Watch(ctx context.Context, r configresolve.Resolver, report func(configresolve.Update) error) error {
	if report == nil {
		return errors.New("watch a configuration: no function given to report to")
	}
	h := newHub(ctx)
	defer h.close()
	var seen []string
	resolve := func() (*configresolve.Config, error) {
		seen = configresolve.Versions(ctx, r.Sources) // what changes from here on is looked at again
		return h.resolve(r)
	}
	wait := func() error {
		return h.wait(ctx, seen != nil, func() bool { return !slices.Equal(configresolve.Versions(ctx, r.Sources), seen) })
	}
	return drift.Watch(ctx, resolve, wait, configresolve.Diff,
		func(c *configresolve.Config, changes []configresolve.Change, err error) error {
			return report(configresolve.Update{Config: c, Changes: changes, Err: err})
		})
}

// wait returns once a feed has changed or, if there is something to look at each second,
// once that differs.
func (h *hub) wait(ctx context.Context, looks bool, differs func() bool) error {
	var look <-chan time.Time
	if looks {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		select {
		case <-h.changed:
			return nil
		case <-look:
			if differs() {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// hub has the feeds of one Watch. Sources with the hub in their context read from
// its feeds instead of the API server.
type hub struct {
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	changed chan struct{} // has one element when a feed has changed

	mu    sync.Mutex
	feeds map[feedKey]*feed
	turn  int // of the resolution
}

type hubKey struct{}

func hubOf(ctx context.Context) *hub {
	h, _ := ctx.Value(hubKey{}).(*hub)
	return h
}

func newHub(ctx context.Context) *hub {
	h := &hub{changed: make(chan struct{}, 1), feeds: map[feedKey]*feed{}}
	h.ctx, h.cancel = context.WithCancel(ctx)
	return h
}

func (h *hub) close() {
	h.cancel()
	h.running.Wait()
}

// resolve resolves from the feeds, and ends those that are no longer needed.
func (h *hub) resolve(r configresolve.Resolver) (*configresolve.Config, error) {
	h.mu.Lock()
	h.turn++
	h.mu.Unlock()
	config, err := r.Resolve(context.WithValue(h.ctx, hubKey{}, h))
	if err != nil {
		return nil, err // a source that was not read may still be needed
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, f := range h.feeds {
		if f.turn < h.turn && key.gvr != definitions {
			f.cancel()
			delete(h.feeds, key)
		}
	}
	return config, nil
}

// feed returns the feed of key, and starts it if there is none.
func (h *hub) feed(key feedKey) *feed {
	h.mu.Lock()
	defer h.mu.Unlock()
	f, ok := h.feeds[key]
	if !ok {
		f = newFeed(h, key)
		h.feeds[key] = f
		h.running.Go(f.run)
	}
	f.turn = h.turn
	return f
}

func (h *hub) signal() {
	select {
	case h.changed <- struct{}{}:
	default: // a signal is already pending
	}
}
