// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/slipway-dev/slipway/internal/kube"
)

// Pauses of a feed are random parts of a window that doubles, so that nodes
// whose watches break together do not come back together. A watch is renewed
// after a random time between watchLife and twice that.
const (
	feedWindow     = 5 * time.Second // after a watch that broke
	servedWindow   = time.Second     // after a custom resource was installed
	feedLastWindow = time.Minute
	watchLife      = 5 * time.Minute
	believeDenied  = 2           // denied watches, so that the list is reported first
	unservedPause  = time.Minute // at least; if no watch shows that a custom resource is installed
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// feed holds the current state of the objects of its key: it lists them once, and
// then follows a watch.
type feed struct {
	hub        *hub
	key        feedKey
	ctx        context.Context
	cancel     context.CancelFunc
	resolution int // the last resolution that needed it

	mu      sync.Mutex
	objects map[string]held
	err     error
	known   bool          // objects or err is set
	next    chan struct{} // closed at the next change

	kept   int // the weight of objects
	pauses int // since the watch was last well
	denied int // watches, one after the other, while the list was granted
}

func newFeed(h *hub, key feedKey) *feed {
	f := &feed{hub: h, key: key, next: make(chan struct{})}
	f.ctx, f.cancel = context.WithCancel(h.ctx)
	return f
}

// read waits for the first state.
func (f *feed) read(ctx context.Context) ([]metav1.Object, error) {
	for {
		objects, known, next, err := f.look()
		if known {
			return objects, err
		}
		select {
		case <-next:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (f *feed) look() (objects []metav1.Object, known bool, next <-chan struct{}, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.objects {
		objects = append(objects, o.Object)
	}
	return objects, f.known, f.next, f.err
}

// change changes the state and wakes all waiters.
func (f *feed) change(change func()) {
	f.mu.Lock()
	change()
	f.known = true
	close(f.next)
	f.next = make(chan struct{})
	f.mu.Unlock()
	f.hub.signal()
}

func (f *feed) run() {
	defer f.cancel()
	for {
		ctx := withBudget(f.ctx) // of the list and all that is watched upon it
		list, version, err := f.key.list(ctx, f.options(), func(metav1.Object) bool { return true })
		if f.ctx.Err() != nil {
			return
		}
		if err != nil {
			f.change(func() { f.objects, f.err = nil, f.key.explain(err, "list", "watch") })
			f.untilServed(err)
			continue
		}
		f.change(func() { f.hold(list) })
		f.follow(ctx, version)
		f.pause()
	}
}

func (f *feed) options() metav1.ListOptions {
	if f.key.name == "" {
		return metav1.ListOptions{}
	}
	return metav1.ListOptions{FieldSelector: "metadata.name=" + f.key.name}
}

// hold keeps the objects of a list.
func (f *feed) hold(list []held) {
	f.objects, f.kept = make(map[string]held, len(list)), 0
	for _, o := range list {
		f.objects[o.GetName()] = o
		f.kept += o.weight
	}
	if f.denied < believeDenied {
		f.err = nil
	}
}

// follow watches from version on, over connections that break and servers that
// restart, until a new list is needed: the version is lost, or an event or the kept
// objects became too large.
func (f *feed) follow(ctx context.Context, version string) {
	for ctx.Err() == nil {
		options := f.options()
		options.ResourceVersion, options.AllowWatchBookmarks = version, true
		seconds := int64((watchLife + rand.N(watchLife)) / time.Second)
		options.TimeoutSeconds = &seconds
		w, err := f.key.watch(ctx, options)
		switch {
		case err == nil:
			f.granted()
			if lost := f.consume(w, &version); lost {
				return
			}
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			if f.denied++; f.denied == believeDenied {
				f.change(func() { f.err = f.key.explain(err, "list", "watch") })
			}
			return
		case apierrors.IsResourceExpired(err), apierrors.IsGone(err), apierrors.IsNotFound(err):
			return // the next list reports the error
		}
		f.pause()
	}
}

// granted records that there is a watch.
func (f *feed) granted() {
	if f.denied >= believeDenied {
		f.change(func() { f.err = nil })
	}
	f.denied = 0
}

// consume follows one connection to its end. lost means that version is no longer
// usable.
func (f *feed) consume(w watch.Interface, version *string) (lost bool) {
	start := time.Now()
	defer func() {
		w.Stop()
		if time.Since(start) > feedLastWindow {
			f.pauses = 0
		}
	}()
	for {
		select {
		case <-f.ctx.Done():
			return false
		case event, ok := <-w.ResultChan():
			if !ok {
				return false
			}
			object, isObject := event.Object.(metav1.Object)
			if event.Type == watch.Error || !isObject {
				return true
			}
			if event.Type != watch.Bookmark && kube.Answers(object, f.key.gvr, f.key.namespace, f.key.name) != nil {
				return true // the next list reports it
			}
			*version, f.pauses = object.GetResourceVersion(), 0
			if !f.take(event.Type, object) {
				return true
			}
		}
	}
}

// take returns false if the objects are too large to keep.
func (f *feed) take(kind watch.EventType, object metav1.Object) bool {
	name := object.GetName()
	switch kind {
	case watch.Added, watch.Modified:
		o := slim(object)
		if f.kept += o.weight - f.objects[name].weight; f.kept > maxKept {
			return false
		}
		f.change(func() { f.objects[name] = o })
	case watch.Deleted:
		f.kept -= f.objects[name].weight
		f.change(func() { delete(f.objects, name) })
	}
	return true
}

// pause waits a random part of a window that doubles.
func (f *feed) pause() { f.wait(f.random(feedWindow), nil) }

func (f *feed) random(window time.Duration) time.Duration {
	window = min(window<<min(f.pauses, 6), feedLastWindow)
	f.pauses++
	return rand.N(window)
}

func (f *feed) wait(d time.Duration, early <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-early:
	case <-f.ctx.Done():
	}
}

// untilServed waits until it is worth while to list again after err: where the
// resource is not served, until its definition changes.
func (f *feed) untilServed(err error) {
	if !kube.NotServed(err) || f.key.gvr.Group == "" || f.key.gvr == definitions {
		f.pause()
		return
	}
	definition := f.hub.feed(feedKey{client: f.key.client, gvr: definitions, name: f.key.gvr.Resource + "." + f.key.gvr.Group})
	if _, err := definition.read(f.ctx); f.ctx.Err() != nil {
		return
	} else if err != nil {
		f.wait(unservedPause+rand.N(unservedPause), nil)
		return
	}
	objects, _, next, _ := definition.look()
	if len(objects) > 0 {
		f.wait(f.random(servedWindow), next) // it exists and is about to be served, or in other versions only
		return
	}
	f.pauses = 0
	select {
	case <-next:
	case <-f.ctx.Done():
	}
}
