// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"context"
	"fmt"
	"sync"
)

// pace lets the requests of a client go together while all is well, and one at
// a time while there is no connection yet, or the API server fails. The others
// wait: for its answer, or for their turn. So a client that asks for several
// things at once makes one connection, and in an outage asks no more often than
// one that asks for them in turn.
type pace struct {
	turn chan struct{} // holds an element while a request has the turn

	mu     sync.Mutex
	well   chan struct{} // closed: all may go
	closed bool          // well is
	failed error         // the last failure; nil: none yet
}

func newPace() *pace {
	return &pace{turn: make(chan struct{}, 1), well: make(chan struct{})}
}

// connected is called when there is a connection. For a client that knows of no
// failure that is enough to be well: it calls first, and lets the others go.
func (p *pace) connected(first func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil && !p.closed {
		first()
		p.open()
	}
}

// answered is called when the API server has said what there is to say.
func (p *pace) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open()
}

func (p *pace) open() {
	if !p.closed {
		close(p.well)
		p.closed = true
	}
}

// fail is called when a request is to be repeated.
func (p *pace) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = err
	if p.closed {
		p.well, p.closed = make(chan struct{}), false
	}
}

func (p *pace) whenWell() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.well
}

// gaveUp is the error of a request whose context has ended before its turn.
func (p *pace) gaveUp(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil {
		return ended(ctx)
	}
	return fmt.Errorf("%w while another request waits for the API server: %w", ended(ctx), p.failed)
}

// ticket is one request at its pace.
type ticket struct {
	pace *pace
	held bool // it has the turn
}

// wait returns when all is well, or the request has the turn.
func (t *ticket) wait(ctx context.Context) error {
	if t.held {
		return nil
	}
	well := t.pace.whenWell()
	select {
	case <-well:
		return nil
	case t.pace.turn <- struct{}{}:
		t.held = true
	case <-ctx.Done():
		return t.pace.gaveUp(ctx)
	}
	select {
	case <-well: // too: the one that had the turn was answered
		t.leave()
	default:
	}
	return nil
}

// leave gives the turn to another.
func (t *ticket) leave() {
	if t.held {
		<-t.pace.turn
		t.held = false
	}
}
