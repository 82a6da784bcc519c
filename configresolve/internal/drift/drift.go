// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package drift lets Watch of configresolve/kube be that of configresolve, which then also
// learns from the API server when to look again.
package drift

import "context"

// Feeds are what is read of a cluster. The zero value has none.
type Feeds struct {
	Changed    <-chan struct{} // has one element when one of them has changed
	Begin, End func()          // are called before a resolution, and after one without an error
}

type feedsKey struct{}

// With returns a context whose sources read from feeds.
func With(ctx context.Context, f Feeds) context.Context {
	return context.WithValue(ctx, feedsKey{}, f)
}

// From returns the feeds of the context.
func From(ctx context.Context) Feeds {
	f, _ := ctx.Value(feedsKey{}).(Feeds)
	return f
}
