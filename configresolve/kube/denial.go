// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// An API server that has just started denies all requests for a moment: its
// authorizer has not read any rule yet, nor its authenticator any ServiceAccount.
// So a denial counts only if it comes from a server that has reported, at /readyz,
// that it is ready. Default rules let every user query that; the denial of a server
// that does not answer the query counts after readyPatience.
const (
	readyPath     = "/readyz"
	readyPatience = 30 * time.Second
)

// doubt is the state of the denials of one request.
type doubt struct {
	ready  bool      // the server was ready before the last attempt
	server int64     // which one
	since  time.Time // when it first had no answer to whether it is
}

func denial(response *http.Response) bool {
	return response != nil && (response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden)
}

// believe decides whether a denial is final.
func (r *retrier) believe(ctx context.Context, req *http.Request, a answer, d *doubt) answer {
	if d.ready && d.server == a.server {
		return a
	}
	status, err := r.ready(ctx, req, a.server, a.response.StatusCode == http.StatusUnauthorized)
	switch {
	case ctx.Err() != nil:
		return a // no better answer will come
	case err == nil && status == http.StatusOK:
		d.ready, d.server, a.now = true, a.server, true
	case err == nil && status < http.StatusInternalServerError:
		if d.since.IsZero() {
			d.since = time.Now()
		}
		if time.Since(d.since) >= readyPatience {
			return a
		}
	}
	a.err = fmt.Errorf("the API server answers %s, and may not be ready", a.response.Status)
	a.response, a.final = nil, false
	return a
}

// ready asks a server whether it is ready, anonymously if the server does not
// accept the credentials.
func (r *retrier) ready(ctx context.Context, req *http.Request, server int64, anonymous bool) (status int, err error) {
	question := req.Clone(ctx)
	question.URL.Path, question.URL.RawPath, question.URL.RawQuery = readyPath, "", ""
	question.Header.Set("Accept", "*/*")
	if anonymous {
		question.Header.Del("Authorization")
	}
	a := r.ask(ctx, question, server)
	if a.response == nil {
		return 0, a.err
	}
	return a.response.StatusCode, nil
}
