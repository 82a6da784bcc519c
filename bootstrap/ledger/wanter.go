// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import "context"

// Wanter says which objects a step wants in which states. Wants changes nothing; it may look
// at the node.
type Wanter interface {
	Wants(ctx context.Context) (Wants, error)
}

type bookKey struct{}

// With returns a context with an open book.
func With(ctx context.Context, b *Book) context.Context { return context.WithValue(ctx, bookKey{}, b) }

// From returns the context's open book. Nil: there is none.
func From(ctx context.Context) *Book {
	b, _ := ctx.Value(bookKey{}).(*Book)
	return b
}

// Learn makes kinds known, for settling and undoing their records.
func (b *Book) Learn(kinds ...*Kind) {
	for _, k := range kinds {
		b.learn(k)
	}
}
