// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"context"
	"errors"
	"io"
	"os"
	"time"
)

// Wanter is a step that says which objects it wants. Wants changes nothing. It may look at
// the node, and is asked again at its step's turn. Its error is certain: the step has failed
// before the first change. Only one that matches [ErrMissing] may be mended by others.
type Wanter interface {
	Wants(ctx context.Context) (Wants, error)
}

// Check returns what [Apply] would change. It is for a Wanter that is used alone.
func Check(ctx context.Context, w Wanter) (changes []string, err error) {
	wants, err := w.Wants(ctx)
	if err != nil {
		return nil, err
	}
	look, err := alone().Check(ctx, "", wants)
	if os.Geteuid() == 0 { // other users may look
		err = errors.Join(err, look.Denied)
	}
	return look.Changes, err
}

// Apply brings the objects of a Wanter to the wanted states, without recording them: they
// cannot be undone.
func Apply(ctx context.Context, w Wanter) error {
	wants, err := w.Wants(ctx)
	if err != nil {
		return err
	}
	_, err = alone().Apply(ctx, "", wants)
	return err
}

// alone returns a book that records nothing.
func alone() *Book { return (&Ledger{}).open(&unrecorded{}, "") }

// orAlone returns b, or a book that records nothing where there is none.
func (b *Book) orAlone() *Book {
	if b == nil {
		return alone()
	}
	return b
}

// unrecorded is a store for one run, in a directory that does not exist. No content comes
// back, and so none is kept.
type unrecorded struct {
	directory
	content []byte
}

func (u *unrecorded) read(string, int64) ([]byte, time.Time, error) {
	return u.content, time.Time{}, nil
}

func (u *unrecorded) write(_ string, content []byte) error {
	u.content = content
	return nil
}

func (*unrecorded) keep(context.Context, State, io.Reader) error { return nil }
func (*unrecorded) open(string) (io.ReadCloser, error)           { return inMemory(nil), nil }
func (*unrecorded) writable() error                              { return nil }

// bookKey is the context key of the book in which a plan records its steps.
type bookKey struct{}

// With returns a context with the book in which steps are recorded.
func With(ctx context.Context, b *Book) context.Context { return context.WithValue(ctx, bookKey{}, b) }

// From returns the book in which the context's step is recorded. Nil: there is none. The
// methods accept a nil *Book, which records nothing.
func From(ctx context.Context) *Book {
	b, _ := ctx.Value(bookKey{}).(*Book)
	return b
}

// Mark returns what an object carries, if it can, to say whose it is: the agent, and the
// directory that records it. Both are empty if there is no book.
func (b *Book) Mark() (agent, dir string) {
	if b == nil {
		return "", ""
	}
	return b.ledger.Agent, b.ledger.Dir
}
