// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	errManyPages = fmt.Errorf("the API server sends a list of more than %d pages", maxPages)
	errTooLarge  = fmt.Errorf("the API server sends more than %d bytes for one source", maxBytes)
	errKept      = fmt.Errorf("the API server sends node configs of more than %d bytes for one source", maxKept)
	errRedirect  = errors.New("the API server redirects to another place, to which no credentials are sent")
	errSwitch    = errors.New("the API server switches to another protocol, for which it was not asked")
	errUnread    = errors.New("read the answer")
)

// oversized reports whether err means that one answer was too large.
func oversized(err error) bool { return errors.Is(err, errAnswer) || errors.As(err, new(*tooMany)) }

// tooMany is the error for an answer with more than maxValues entries, or for such an event
// of a watch, whose body it does not have.
type tooMany struct{ body []byte }

func (*tooMany) Error() string {
	return fmt.Sprintf("the API server sends more than %d entries in one answer", maxValues)
}

// only returns the name of the only object of a list, and the token of the next page.
func (e *tooMany) only() (name, next string, err error) {
	var list struct {
		Metadata metav1.ListMeta
		Items    []struct{ Metadata struct{ Name string } }
	}
	if err := json.Unmarshal(e.body, &list); err != nil || len(list.Items) != 1 || list.Items[0].Metadata.Name == "" {
		return "", "", errors.Join(e, err)
	}
	return list.Items[0].Metadata.Name, list.Metadata.Continue, nil
}

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
	response.Body = buffered{bytes.NewReader(body)}
	if err := new(meter).count(body); err != nil {
		return &tooMany{body}
	}
	return nil
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
	response.Body = &metered{ReadCloser: response.Body}
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
	bytes, values   int
	depth           int
	quoted, escaped bool
}

func (m *meter) count(text []byte) error {
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
		return &tooMany{}
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

// inJSON makes a request ask for JSON only: entries of other formats cannot be counted, and
// aliases in YAML multiply what it is decoded to.
func inJSON(request http.Header) {
	others := func(kind string) bool { return !strings.Contains(kind, "json") && !strings.Contains(kind, "*/*") }
	kinds := slices.DeleteFunc(strings.Split(request.Get("Accept"), ","), others)
	request.Set("Accept", cmp.Or(strings.Join(kinds, ","), "application/json"))
}

// orText makes an answer in another format, or in none, one that client-go does not decode.
func orText(answer http.Header) {
	if kind, _, err := mime.ParseMediaType(answer.Get("Content-Type")); err != nil || kind != "application/json" {
		answer.Set("Content-Type", "text/plain")
	}
}
