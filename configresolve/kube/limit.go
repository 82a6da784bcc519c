// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
)

// A server, or whoever answers in its place, decides how long its answers are
// and how many pages a list has. So all that is read for one source, over all
// pages, may be maxBytes, with maxValues objects and lists in it, of which each
// takes far more memory than the two bytes that it needs here; and a list may
// have maxPages. That is enough for three node configs on each of the nodes of
// the largest clusters.
const (
	maxBytes  = 64 << 20
	maxValues = 1_000_000
	maxPages  = 100
)

var (
	errTooLarge  = fmt.Errorf("the API server sends more than %d bytes for one source", maxBytes)
	errTooMany   = fmt.Errorf("the API server sends more than %d objects and lists for one source", maxValues)
	errManyPages = fmt.Errorf("the API server sends a list of more than %d pages", maxPages)
	errRedirect  = errors.New("the API server sends us elsewhere, where our credentials do not go")
)

// budget is how much may still be read.
type budget struct{ left, values atomic.Int64 }

type budgetKey struct{}

// withBudget makes all reads with the context share one budget.
func withBudget(ctx context.Context) context.Context {
	b := &budget{}
	b.left.Store(maxBytes)
	b.values.Store(maxValues)
	return context.WithValue(ctx, budgetKey{}, b)
}

// budgetOf returns the budget of ctx, or a new one if ctx has none.
func budgetOf(ctx context.Context) *budget {
	if b, ok := ctx.Value(budgetKey{}).(*budget); ok {
		return b
	}
	return budgetOf(withBudget(ctx))
}

func (b *budget) spent() bool { return b.left.Load() <= 0 || b.values.Load() <= 0 }

// valuesIn is how many objects and lists there may be in a text of JSON.
func valuesIn(text []byte) int64 {
	return int64(bytes.Count(text, []byte("{")) + bytes.Count(text, []byte("[")))
}

// buffer reads the whole body, so that a connection that breaks in the middle
// counts as a failed attempt.
func (b *budget) buffer(response *http.Response) error {
	left := b.left.Load()
	body, err := io.ReadAll(io.LimitReader(response.Body, left+1))
	response.Body.Close()
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if int64(len(body)) > left {
		return errTooLarge
	}
	values := valuesIn(body)
	if values > b.values.Load() {
		return errTooMany
	}
	response.Body = buffered{bytes.NewReader(body), values}
	return nil
}

type buffered struct {
	*bytes.Reader
	values int64
}

func (buffered) Close() error { return nil }

// charge counts an answer that the caller gets: at once or, for a watch, as it is
// read.
func (b *budget) charge(response *http.Response) {
	switch body := response.Body.(type) {
	case buffered:
		b.left.Add(-body.Size())
		b.values.Add(-body.values)
	default:
		response.Body = metered{body, b}
	}
}

// metered is the body of a watch, which ends when the budget does.
type metered struct {
	io.ReadCloser
	budget *budget
}

func (m metered) Read(p []byte) (int, error) {
	if m.budget.spent() {
		return 0, errTooLarge
	}
	n, err := m.ReadCloser.Read(p)
	m.budget.left.Add(-int64(n))
	m.budget.values.Add(-valuesIn(p[:n]))
	return n, err
}

// stay refuses a redirect to another server, or to the same one in clear text.
// The HTTP client would follow, and client-go would send its token there, too.
func stay(sent *url.URL, response *http.Response) error {
	if response.StatusCode < 300 || response.StatusCode > 399 {
		return nil
	}
	to, err := sent.Parse(response.Header.Get("Location"))
	if err != nil {
		return fmt.Errorf("%w: %s, whose Location is not a URL", errRedirect, response.Status)
	}
	if to.Scheme != sent.Scheme || to.Host != sent.Host {
		return fmt.Errorf("%w: %s to %s://%s", errRedirect, response.Status, to.Scheme, to.Host)
	}
	return nil
}
