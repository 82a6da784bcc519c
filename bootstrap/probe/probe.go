// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package probe answers an agent's health probe from the outcome of its plan.
//
//	listeners, err := probe.Listen() // 127.0.0.1:9879 and [::1]:9879
//	health := &probe.Probe{MaxAge: 10 * time.Minute}
//	loop := reconcile.Loop{Plan: plan, Done: health.Done}
//	go health.Serve(ctx, listeners...)
//
// GET /healthz has the status 200 if the last run of the plan succeeded, else 503.
// The body is the report of that run or, for a request with the header "brief: true",
// one line: "ok", or the cause.
//
// It needs no capability. Clients are not authenticated, so it listens on the loopback
// addresses only, unless others are given: a kubelet's httpGet probe with host 127.0.0.1
// reaches it in a pod with hostNetwork. Serve listens and answers in the network
// namespace in which [Listen] was called.
//
// Do not use it for metrics, nor to distinguish the parts of an agent: it has one answer.
package probe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/internal/printable"
)

// Probe is the health of an agent. Its zero value is one that is not healthy yet. It
// is an [http.Handler], and may be used by several goroutines.
type Probe struct {
	// Check, if set, is called for each request if the plan's last run succeeded. An
	// error means that the agent is not healthy.
	Check func(context.Context) error

	// MaxAge is how old the last run may be: a few intervals of its loop. After that the
	// agent counts as hanging, and is not healthy. Zero means any age.
	MaxAge time.Duration

	mu     sync.Mutex
	report *bootstrap.Report
	err    error
	at     time.Time
}

// Done keeps the outcome of a run of the plan. It can be the Done of a reconcile.Loop.
func (p *Probe) Done(report *bootstrap.Report, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report, p.err, p.at = report, err, time.Now()
}

// look returns the last run's report, and why the agent is not healthy; nil if it is.
func (p *Probe) look(ctx context.Context) (*bootstrap.Report, error) {
	p.mu.Lock()
	report, err, at := p.report, p.err, p.at
	p.mu.Unlock()
	switch age := time.Since(at); {
	case at.IsZero():
		return nil, errors.New("no run of the plan has ended yet")
	case err != nil:
		return report, err
	case p.MaxAge > 0 && age > p.MaxAge:
		return report, fmt.Errorf("the last run of the plan ended %v ago", age.Round(time.Second))
	case p.Check != nil:
		return report, p.Check(ctx)
	}
	return report, nil
}

// ServeHTTP answers GET /healthz.
func (p *Probe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != "/healthz":
		http.NotFound(w, r)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "want GET", http.StatusMethodNotAllowed)
		return
	}
	report, err := p.look(r.Context())
	status, text := http.StatusOK, "ok"
	if err != nil {
		status, text = http.StatusServiceUnavailable, printable.Line(err.Error())
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
	if report != nil && r.Header.Get("brief") != "true" {
		fmt.Fprintln(w, report)
	}
}
