// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// A reachable server answers in milliseconds. If a server has not answered within
// firstBound, during which TCP has tried twice, the next attempt uses the mark, and
// the one after it, as long, does not; then each attempt has twice the time of the
// previous one of its kind.
//
// client-go's own dialer has the same timeout and the same keep-alive interval.
const (
	firstBound       = 2 * time.Second
	defaultTimeout   = 30 * time.Second
	defaultKeepAlive = 30 * time.Second
)

// Attempt is one attempt to connect to a server. See [Connection].Mark.
type Attempt struct {
	Address string
	Marked  bool  // its packets, or those that asked for the server's name, were to have the mark
	Refused error // why the mark was not set, or nil
	Err     error // why there is no connection, or nil
}

// dialer connects to a server without a mark and, if that does not answer,
// alternately with and without it.
type dialer struct {
	mark               uint32 // 0: none
	timeout, keepAlive time.Duration
	dialed             func(Attempt) // may be nil
}

// marks selects the packets that have the mark: queries for the server's name, and
// packets to the server. The two are separate, since a policy that stops unmarked
// packets to the one may let them pass to the other.
type marks struct{ name, server bool }

// of returns the mark that applies to the failed part.
func (m *marks) of(err error) *bool {
	if errors.As(err, new(*net.DNSError)) {
		return &m.name
	}
	return &m.server
}

// DialContext connects to an address, as that of net.Dialer does.
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if timeout := cmp.Or(d.timeout, defaultTimeout); timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	bound := firstBound
	if d.mark == 0 {
		bound = 0
	}
	var m marks
	for late := false; ; {
		last := d.attempt(ctx, network, address, m, bound)
		if last.Err == nil || over(ctx) || bound == 0 || answered(last.Err) {
			return last.conn, d.explain(last)
		}
		marked := m.of(last.Err)
		switch {
		case *marked && !(late && last.late): // one of them failed by itself
			return nil, d.explain(last)
		case *marked && last.Refused != nil:
			m, bound = marks{}, 0
			continue
		case *marked:
			bound *= 2
		}
		*marked, late = !*marked, last.late
	}
}

// over reports whether ctx has ended, or its deadline has passed: connections end
// at the deadline, a moment before ctx does.
func over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// answered reports whether err is the answer of a reachable name server.
func answered(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}

// explain returns the error of an attempt, and mentions a failed one with the mark.
func (d dialer) explain(a attempt) error {
	if a.Err == nil || !a.Marked || a.Refused != nil {
		return a.Err
	}
	return fmt.Errorf("%w (also tried with the mark %#x)", a.Err, d.mark)
}

// attempt is an Attempt with its result.
type attempt struct {
	Attempt
	conn net.Conn
	late bool // there was no answer in time
}

// attempt connects once, within bound unless that is 0.
func (d dialer) attempt(ctx context.Context, network, address string, m marks, bound time.Duration) attempt {
	limited := ctx
	if bound > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, bound)
		defer cancel()
	}
	var marker marker
	once := net.Dialer{KeepAlive: cmp.Or(d.keepAlive, defaultKeepAlive)}
	if m.server {
		once.Control = marker.control(d.mark)
	}
	if m.name { // which only Go's own resolver can
		once.Resolver = &net.Resolver{PreferGo: true, Dial: (&net.Dialer{Control: marker.control(d.mark)}).DialContext}
	}
	a := attempt{Attempt: Attempt{Address: address, Marked: m.name || m.server}}
	a.conn, a.Err = once.DialContext(limited, network, address)
	var failure net.Error
	a.Refused, a.late = marker.refusal(), errors.As(a.Err, &failure) && failure.Timeout() // maybe before limited ends
	if d.dialed != nil {
		d.dialed(a.Attempt)
	}
	return a
}

// marker gives sockets a mark, and keeps the error if one could not get it. The
// sockets of one attempt are made at the same time.
type marker struct {
	mu      sync.Mutex
	refused error
}

// control returns a function for net.Dialer.Control. A socket that may not have the
// mark is used without it.
func (k *marker) control(mark uint32) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var err error
		if controlErr := c.Control(func(fd uintptr) { err = setMark(fd, mark) }); controlErr != nil {
			return controlErr
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.refused = cmp.Or(k.refused, err)
		return nil
	}
}

func (k *marker) refusal() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.refused
}
