// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"context"
	"sync"

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
	h := newHub(ctx)
	defer h.close()
	ctx = drift.With(context.WithValue(h.ctx, hubKey{}, h), drift.Feeds{Changed: h.changed, Begin: h.begin, End: h.endUnused})
	return configresolve.Watch(ctx, r, report)
}

// hub has the feeds of one Watch. Sources with the hub in their context read from
// its feeds instead of the API server.
type hub struct {
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	changed chan struct{} // has one element when a feed has changed

	mu         sync.Mutex
	feeds      map[feedKey]*feed
	resolution int // of the resolution
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

// begin begins a resolution.
func (h *hub) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.resolution++
}

// endUnused ends the feeds that the last resolution has not needed.
func (h *hub) endUnused() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, f := range h.feeds {
		if f.resolution < h.resolution && key.gvr != definitions {
			f.cancel()
			delete(h.feeds, key)
		}
	}
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
	f.resolution = h.resolution
	return f
}

func (h *hub) signal() {
	select {
	case h.changed <- struct{}{}:
	default: // a signal is already pending
	}
}
