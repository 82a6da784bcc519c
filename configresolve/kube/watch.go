// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/configresolve"
)

// Update is one report of [Watch].
type Update struct {
	// Config is the newest configuration that could be resolved.
	Config *configresolve.Config
	// Changes lists the keys in which it differs from the one reported before;
	// all keys in the first report.
	Changes []configresolve.Change
	// Err says why the sources cannot be resolved any more: one was deleted, or
	// the right to read it was withdrawn. Config is then the last good one and
	// Changes is empty. The next report that has none says that it is over.
	Err error
}

// Watch resolves r and calls report with the outcome, and again each time that
// the outcome differs: in a value, or in where one comes from. It returns when
// ctx ends, with its error; when report returns an error, with that; and when
// the very first resolution fails.
//
// It holds a watch on each object that the sources of this package need, and
// asks the API server for nothing else: a change costs no request. What was
// missed while the API server was away is made up for once it is back, within a
// minute or two. A custom resource that is installed later counts from then on,
// and so do node configs that select the node once its labels have changed.
// Several changes that come at once may be one report.
//
// Beside the verbs that the sources need, it takes list and watch on the same
// objects, and on the definition of the custom resource. Where the latter is
// denied and the custom resource is not installed, Watch looks for it every
// minute or two. Sources of other packages are read again with each report, but
// a change in them causes none. No goroutine is left when Watch returns.
func Watch(ctx context.Context, r configresolve.Resolver, report func(Update) error) error {
	h := newHub(ctx)
	defer h.close()
	var last *configresolve.Config
	trouble := ""
	for {
		config, err := h.resolve(r)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		update, news := compare(last, config, err, trouble)
		switch {
		case err != nil && last == nil:
			return err
		case news:
			if err := report(update); err != nil {
				return err
			}
		}
		last, trouble = update.Config, text(update.Err)
		select {
		case <-h.changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// compare makes a report of a resolution, and says whether it is one.
func compare(last, config *configresolve.Config, err error, trouble string) (u Update, news bool) {
	if err != nil {
		return Update{Config: last, Err: err}, err.Error() != trouble
	}
	u = Update{Config: config, Changes: configresolve.Diff(last, config)}
	return u, last == nil || trouble != "" || len(u.Changes) > 0
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// hub has the feeds of one Watch. The sources find it in their context and then
// read from its feeds, which hold what they would otherwise ask for.
type hub struct {
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	changed chan struct{} // has one element when a feed has changed

	mu    sync.Mutex
	feeds map[feedKey]*feed
	turn  int // of the resolution
}

// feedKey is what a feed holds: one object, or all of a namespace.
type feedKey struct {
	client          *Client
	gvr             schema.GroupVersionResource
	namespace, name string
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
		return nil, err // a source that was not asked may be needed yet
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

// feed returns the feed of key, which it starts where there is none.
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
	default: // it has been told, and has not looked yet
	}
}
