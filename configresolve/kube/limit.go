// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"sync/atomic"
)

// A server, or an impostor, decides how long its answers are, how many there are,
// and how much memory they take. So one answer, or one event of a watch, may be
// maxAnswer long and have maxValues entries; a list may have maxPages, of maxBytes
// together; and what is kept for one source may weigh maxKept. That is enough for
// three node configs on each of the nodes of the largest clusters, and, for a
// Watch, which keeps them all, for one.
const (
	maxAnswer = 4 << 20
	maxValues = 50_000
	maxPages  = 100
	maxBytes  = 64 << 20
	maxKept   = 16 << 20
)

var (
	errAnswer    = fmt.Errorf("the API server sends more than %d bytes in one answer", maxAnswer)
	errTooMany   = fmt.Errorf("the API server sends more than %d entries in one answer", maxValues)
	errManyPages = fmt.Errorf("the API server sends a list of more than %d pages", maxPages)
	errTooLarge  = fmt.Errorf("the API server sends more than %d bytes for one source", maxBytes)
	errKept      = fmt.Errorf("the API server sends node configs of more than %d bytes for one source", maxKept)
	errRedirect  = errors.New("the API server redirects to another place, to which no credentials are sent")
	errSwitch    = errors.New("the API server switches to another protocol, for which it was not asked")
	errUnread    = errors.New("read the answer")
)

// oversized reports whether err means that one answer was too large.
func oversized(err error) bool { return errors.Is(err, errAnswer) || errors.Is(err, errTooMany) }

// budget is the number of bytes that may still be read for one source.
type budget struct{ left atomic.Int64 }

type budgetKey struct{}

// withBudget makes all reads with the context share one budget.
func withBudget(ctx context.Context) context.Context {
	b := &budget{}
	b.left.Store(maxBytes)
	return context.WithValue(ctx, budgetKey{}, b)
}

// budgetOf returns the budget of ctx, or a new one if ctx has none.
func budgetOf(ctx context.Context) *budget {
	if b, ok := ctx.Value(budgetKey{}).(*budget); ok {
		return b
	}
	return budgetOf(withBudget(ctx))
}

// buffer reads the whole body, so that a connection that breaks in the middle
// counts as a failed attempt.
func (b *budget) buffer(response *http.Response) error {
	left := b.left.Load()
	body, err := io.ReadAll(io.LimitReader(response.Body, min(left, maxAnswer)+1))
	response.Body.Close()
	switch {
	case err != nil:
		return fmt.Errorf("%w, of which %d bytes came: %w", errUnread, len(body), err)
	case int64(len(body)) > left:
		return errTooLarge
	case len(body) > maxAnswer:
		return errAnswer
	}
	meter := meterOf(response)
	response.Body = buffered{bytes.NewReader(body)}
	return meter.count(body)
}

type buffered struct{ *bytes.Reader }

func (buffered) Close() error { return nil }

// charge counts an answer that the caller gets: at once or, for a watch, as it is
// read.
func (b *budget) charge(response *http.Response) {
	if body, ok := response.Body.(buffered); ok {
		b.left.Add(-body.Size())
		return
	}
	response.Body = &metered{response.Body, meterOf(response)}
}

// metered is the body of a watch, which ends with an event that is too large.
type metered struct {
	io.ReadCloser
	meter meter
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	if err := m.meter.count(p[:n]); err != nil {
		return 0, err
	}
	return n, err
}

// meter counts the bytes and entries of an answer, or of the event of a watch that
// is being read. An entry is of an object or a list, and takes far more memory
// than the few bytes that it needs in the answer.
type meter struct {
	binary          bool // the entries cannot be distinguished
	bytes, values   int
	depth           int
	quoted, escaped bool
}

func meterOf(response *http.Response) meter {
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return meter{binary: kind != "application/json"}
}

// leastEntry is the least length of an entry that is not JSON, in bytes.
const leastEntry = 8

func (m *meter) count(text []byte) error {
	if m.binary {
		m.bytes += len(text)
		m.values = m.bytes / leastEntry
		return m.check()
	}
	for _, c := range text {
		m.bytes++
		switch {
		case m.escaped:
			m.escaped = false
		case m.quoted:
			m.quoted, m.escaped = c != '"', c == '\\'
		case c == '"':
			m.quoted = true
		case c == ',':
			m.values++
		case c == '{', c == '[':
			m.values++
			m.depth++
		case c == '}', c == ']':
			if m.depth--; m.depth <= 0 {
				if err := m.check(); err != nil {
					return err
				}
				*m = meter{} // another event begins
			}
		}
	}
	return m.check()
}

func (m *meter) check() error {
	switch {
	case m.bytes > maxAnswer:
		return errAnswer
	case m.values > maxValues:
		return errTooMany
	}
	return nil
}

// entryWeight is roughly the memory of an entry beside its text, in bytes.
const entryWeight = 100

// weight is roughly the memory of a value of an object, in bytes.
func weight(value any) int {
	sum := entryWeight
	switch value := value.(type) {
	case string:
		sum += len(value)
	case []any:
		for _, v := range value {
			sum += weight(v)
		}
	case map[string]any:
		for k, v := range value {
			sum += len(k) + weight(v)
		}
	}
	return sum
}

// refuse returns an error for what no API server answers: another protocol, whose bytes no
// context ends, or a redirect to another server, or to the same one in clear text. The
// HTTP client would follow, and client-go would send its token there, too.
func refuse(sent *url.URL, response *http.Response) error {
	switch code := response.StatusCode; {
	case code == http.StatusSwitchingProtocols:
		return fmt.Errorf("%w: %s", errSwitch, response.Status)
	case code < 300 || code > 399:
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
