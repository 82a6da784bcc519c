// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/flowcontrol"

	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/waiting"
)

// A failed read is tried again at once, within firstWindow, and then at a random
// time within the spread, so that nodes that fail together do not come back
// together. The windows do not grow in between: with growing windows, the nodes
// that have just met an outage are the first to come back after it, all in the same
// second. With a spread of a minute, an API server that was away for 20 s meets
// about one and a half times the requests that it had before.
//
// A server that answers 429 is alive, and paces its clients itself: for it the
// windows double from busyWindow on.
//
// An attempt, with its body, may take attemptTimeout.
const (
	firstWindow    = 500 * time.Millisecond
	defaultSpread  = time.Minute
	busyWindow     = time.Second
	attemptTimeout = 30 * time.Second
)

// retrier repeats reads until one is answered or the context ends. It is a
// transport, so that every client above it behaves the same; client-go's own
// retries, which it keeps from seeing a Retry-After, have no jitter.
type retrier struct {
	next    http.RoundTripper
	servers []*url.URL // empty: the one that the request names
	spread  time.Duration
	limit   flowcontrol.RateLimiter
	current atomic.Int64 // index of the server that answered last
}

func newRetrier(next http.RoundTripper, servers []*url.URL, spread time.Duration, limit flowcontrol.RateLimiter) *retrier {
	if spread <= 0 {
		spread = defaultSpread
	}
	return &retrier{next: next, servers: servers, spread: spread, limit: limit}
}

// RoundTrip implements http.RoundTripper. A request that is not a read is sent once,
// as is a watch, unless it is denied.
func (r *retrier) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, ask := req.Context(), r.round
	budget := budgetOf(ctx)
	ctx = context.WithValue(ctx, budgetKey{}, budget)
	server := "the API server " + req.URL.Scheme + "://" + req.URL.Host
	ctx, wait := waiting.On(ctx, server+" to answer")
	defer wait.End()
	switch {
	case req.Method != http.MethodGet:
		a := r.once(ctx, req)
		return a.response, a.err
	case watches(req):
		ask = r.once
	}
	var last answer
	var doubt doubt
	for attempts := 0; ; attempts++ {
		a := ask(ctx, req)
		if denial(a.response) {
			a = r.believe(ctx, req, a, &doubt)
		}
		switch {
		case a.final && attempts > 0 && ctx.Err() != nil && errors.Is(a.err, ctx.Err()):
			return nil, gaveUp(ctx, attempts, last) // a more detailed error
		case a.final && a.response != nil:
			budget.charge(a.response)
			return a.response, nil
		case a.final:
			return nil, a.err
		}
		if !r.pause(ctx, a, attempts, server, wait) {
			return nil, gaveUp(ctx, attempts+1, a)
		}
		last = a
	}
}

func gaveUp(ctx context.Context, attempts int, last answer) error {
	return fmt.Errorf("%w after %d attempts, the last: %w", failure.Ended(ctx), attempts, last.err)
}

// pause waits before another attempt: for as long as the server asks, and then
// for a random time. It returns false if ctx ends.
func (r *retrier) pause(ctx context.Context, a answer, attempt int, server string, wait *waiting.Wait) bool {
	if a.now {
		return true
	}
	pause := a.retryAfter + rand.N(window(attempt, a.busy, r.spread))
	next := time.Now().Add(pause).UTC().Format(time.RFC3339)
	wait.For(ctx, fmt.Sprintf("%s: %v (attempt %d, the next at %s)", server, a.err, attempt+1, next), 0)
	return failure.Sleep(ctx, pause) == nil
}

// once asks one server and, if that one is not healthy, makes the next request go
// to another.
func (r *retrier) once(ctx context.Context, req *http.Request) answer {
	server := r.current.Load()
	if err := r.wait(ctx); err != nil {
		return answer{err: err, server: server, final: true}
	}
	response, err := r.send(ctx, req, server)
	if len(r.servers) > 1 && ctx.Err() == nil && (err != nil || response.StatusCode >= http.StatusInternalServerError) {
		r.current.CompareAndSwap(server, (server+1)%int64(len(r.servers)))
	}
	return answer{response: response, err: err, server: server, final: true}
}

// window returns the window for the next attempt after the given number of
// attempts, counted from zero. It begins after the wait that the server requests.
func window(attempt int, busy bool, spread time.Duration) time.Duration {
	switch {
	case busy && attempt < 6:
		return min(busyWindow<<attempt, spread)
	case !busy && attempt == 0:
		return min(firstWindow, spread)
	}
	return spread
}

// answer is the result of asking, final if asking again cannot change it.
type answer struct {
	response   *http.Response
	err        error
	server     int64 // its index
	final      bool
	now        bool // ask again without a wait
	refused    bool // by us: TLS or a redirect shows that it is no API server; another one may be
	busy       bool // alive and asking for patience: no other server is tried
	retryAfter time.Duration
}

// round asks each server once, until one answers.
func (r *retrier) round(ctx context.Context, req *http.Request) answer {
	start, count := r.current.Load(), int64(max(len(r.servers), 1))
	var last answer
	refused := true
	for i := range count {
		wait := last.retryAfter
		last = r.ask(ctx, req, start+i)
		last.server, last.retryAfter = (start+i)%count, max(last.retryAfter, wait)
		if last.final && !last.refused || last.busy {
			r.current.Store(last.server)
			return last
		}
		refused = refused && last.refused
	}
	last.final = refused
	return last
}

func (r *retrier) ask(ctx context.Context, req *http.Request, server int64) answer {
	if err := r.wait(ctx); err != nil {
		return answer{err: err, final: true}
	}
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	response, err := r.send(attempt, req, server)
	switch {
	case err == nil:
		return judge(response)
	case ctx.Err() != nil && errors.Is(err, errUnread):
		return answer{err: fmt.Errorf("%w: %w", failure.Ended(ctx), err), final: true}
	case ctx.Err() != nil:
		return answer{err: failure.Ended(ctx), final: true}
	case tlsRefused(err), errors.Is(err, errRedirect), errors.Is(err, errSwitch):
		return answer{err: err, final: true, refused: true}
	}
	return answer{err: err, final: oversized(err) || errors.Is(err, errTooLarge)}
}

// wait waits until the limit of requests lets another one through. The limiter does not
// wait where the deadline would come first: then this does, for the deadline's cause.
func (r *retrier) wait(ctx context.Context) error {
	if r.limit.Wait(ctx) == nil {
		return nil
	}
	if ctx.Err() != nil {
		return failure.Ended(ctx)
	}
	<-ctx.Done()
	return fmt.Errorf("%w: the rate limit leaves no time for another request", failure.Ended(ctx))
}

func judge(response *http.Response) answer {
	switch response.StatusCode {
	case http.StatusTooManyRequests:
		return answer{err: errors.New("the API server answers " + response.Status), busy: true, retryAfter: retryAfter(response)}
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return answer{err: errors.New("the API server answers " + response.Status), retryAfter: retryAfter(response)}
	}
	return answer{response: response, final: true}
}

// retryAfter understands seconds, the only form that API servers send.
func retryAfter(response *http.Response) time.Duration {
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, time.Minute)
}

// send sends a request to the given server and to no other, and reads the whole answer,
// except for the events of a watch.
func (r *retrier) send(ctx context.Context, req *http.Request, server int64) (*http.Response, error) {
	out := r.to(ctx, req, server)
	response, err := r.next.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	if err := refuse(out.URL, response); err != nil {
		response.Body.Close()
		return nil, err
	}
	orText(response.Header)
	if watches(req) && response.StatusCode == http.StatusOK {
		return response, nil
	}
	if err := budgetOf(ctx).buffer(response); err != nil {
		return nil, err
	}
	return response, nil
}

func watches(req *http.Request) bool {
	return req.Method == http.MethodGet && req.URL.Query().Has("watch")
}

// to returns req as a request to the given server.
func (r *retrier) to(ctx context.Context, req *http.Request, server int64) *http.Request {
	out := req.Clone(ctx)
	inJSON(out.Header)
	if len(r.servers) > 0 {
		target := r.servers[server%int64(len(r.servers))]
		out.URL.Scheme, out.URL.Host, out.Host = target.Scheme, target.Host, ""
	}
	return out
}

// tlsRefused reports whether the two sides do not trust each other, or do not both
// speak TLS, which time does not change.
func tlsRefused(err error) bool {
	var certificate *tls.CertificateVerificationError
	var alert tls.AlertError
	var record tls.RecordHeaderError
	var remote *net.OpError
	return errors.As(err, &certificate) || errors.As(err, &alert) || errors.As(err, &record) ||
		errors.As(err, &remote) && remote.Op == "remote error" // an alert of the other side
}
